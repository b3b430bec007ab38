/** All commands, each a module that is loaded lazily. */
import type { ParseArgsOptionsConfig } from "node:util"
import type { Command } from "./command.ts"
import type { Flags } from "./parse-flags.ts"

/** The module of a command with flags of its own. */
export interface Program {
  readonly help: string
  readonly options: ParseArgsOptionsConfig
  /** Resolves with the exit code. */
  run(flags: Flags): Promise<number>
}

/** The module of a command that uses the API. */
export interface ApiCommand {
  readonly command: Command
}

export interface CommandEntry {
  readonly summary: string
  load(): Promise<Program | ApiCommand>
}

export const COMMANDS: { readonly [name: string]: CommandEntry } = {
  serve: {
    summary: "the HTTP API, compatible with clients for Svix, and the engine",
    load: () => import("./serve.ts"),
  },
  demo: {
    summary: "the engine against a receiver that misbehaves, live, in ten seconds",
    load: () => import("./demo.ts"),
  },
  worker: {
    summary: "a process that delivers from a store and has no API",
    load: () => import("./worker.ts"),
  },
  agent: {
    summary: "receives webhooks behind a firewall, and forwards them to a local program",
    load: () => import("./commands/agent.ts"),
  },
  listen: {
    summary: "webhooks of a provider on your own machine, while you develop",
    load: () => import("./commands/listen.ts"),
  },
  migrate: { summary: "moves a store from an SQLite file to PostgreSQL", load: () => import("./migrate.ts") },
  config: { summary: "every setting in force, and where it came from", load: () => import("./config.ts") },
  dashboard: {
    summary: "a link that signs in to the dashboard",
    load: () => import("./commands/dashboard.ts"),
  },
  send: { summary: "a message to the endpoints of an application", load: () => import("./commands/send.ts") },
  apps: { summary: "applications", load: () => import("./commands/apps.ts") },
  endpoints: { summary: "where webhooks go", load: () => import("./commands/endpoints.ts") },
  sources: {
    summary: "URLs that take webhooks in from providers",
    load: () => import("./commands/sources.ts"),
  },
  messages: {
    summary: "accepted messages and their endpoints",
    load: () => import("./commands/messages.ts"),
  },
  deliveries: {
    summary: "one message for one endpoint, and its status",
    load: () => import("./commands/deliveries.ts"),
  },
  attempts: { summary: "requests and their responses", load: () => import("./commands/attempts.ts") },
  dead: { summary: "dead letters: list, count, retry, discard", load: () => import("./commands/dead.ts") },
  tail: { summary: "what happens, while it happens", load: () => import("./commands/tail.ts") },
  lanes: {
    summary: "endpoints with waiting deliveries, and why they wait",
    load: () => import("./commands/lanes.ts"),
  },
  workers: {
    summary: "processes that deliver, and their lanes",
    load: () => import("./commands/workers.ts"),
  },
  agents: {
    summary: "agents behind firewalls, and whether they are connected",
    load: () => import("./commands/agents.ts"),
  },
  alerts: {
    summary: "what is wrong now, and where notifications of it go",
    load: () => import("./commands/alerts.ts"),
  },
  policies: { summary: "how deliveries are retried", load: () => import("./commands/policies.ts") },
  "operational-webhooks": {
    summary: "notifications about endpoints that change and messages that fail",
    load: () => import("./commands/operational-webhooks.ts"),
  },
  "event-types": { summary: "the catalogue of event types", load: () => import("./commands/event-types.ts") },
  keys: { summary: "API keys", load: () => import("./commands/keys.ts") },
  tasks: { summary: "background tasks", load: () => import("./commands/tasks.ts") },
  stats: { summary: "how many deliveries are in each state", load: () => import("./commands/stats.ts") },
  changes: { summary: "who changed what, and when", load: () => import("./commands/changes.ts") },
  cost: { summary: "what retries cost, and what fewer would", load: () => import("./commands/cost.ts") },
  health: { summary: "whether messages would be accepted now", load: () => import("./commands/health.ts") },
  completion: { summary: "completion scripts for shells", load: () => import("./commands/completion.ts") },
  bench: { summary: "the project's benchmark", load: () => import("./commands/bench.ts") },
}
