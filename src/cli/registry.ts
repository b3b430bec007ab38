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
    summary: "the HTTP API that clients for Svix speak, with the engine behind it",
    load: () => import("./serve.ts"),
  },
  demo: {
    summary: "the engine against a receiver that misbehaves, live, in ten seconds",
    load: () => import("./demo.ts"),
  },
  worker: {
    summary: "a process that delivers what waits in a store, and nothing else",
    load: () => import("./worker.ts"),
  },
  migrate: {
    summary: "moves a store from an SQLite file to PostgreSQL",
    load: () => import("./migrate.ts"),
  },
  config: {
    summary: "every setting in force, and where it came from",
    load: () => import("./config.ts"),
  },
  send: { summary: "a message to the endpoints of an application", load: () => import("./commands/send.ts") },
  apps: { summary: "applications", load: () => import("./commands/apps.ts") },
  endpoints: { summary: "where webhooks go", load: () => import("./commands/endpoints.ts") },
  messages: { summary: "what was sent, and to whom", load: () => import("./commands/messages.ts") },
  deliveries: {
    summary: "one message for one endpoint, and how it goes",
    load: () => import("./commands/deliveries.ts"),
  },
  attempts: { summary: "single requests, and what came back", load: () => import("./commands/attempts.ts") },
  dead: {
    summary: "what was given up: look, count, send again, discard",
    load: () => import("./commands/dead.ts"),
  },
  lanes: { summary: "what waits, why, and since when", load: () => import("./commands/lanes.ts") },
  workers: { summary: "who delivers, and holds what", load: () => import("./commands/workers.ts") },
  policies: { summary: "how deliveries are retried", load: () => import("./commands/policies.ts") },
  "operational-webhooks": {
    summary: "who is told of endpoints that change and messages that fail",
    load: () => import("./commands/operational-webhooks.ts"),
  },
  "event-types": {
    summary: "the catalogue of what is sent",
    load: () => import("./commands/event-types.ts"),
  },
  keys: { summary: "who may use the API", load: () => import("./commands/keys.ts") },
  tasks: { summary: "work that goes on by itself", load: () => import("./commands/tasks.ts") },
  stats: { summary: "how many deliveries are in each state", load: () => import("./commands/stats.ts") },
  health: { summary: "whether messages would be accepted now", load: () => import("./commands/health.ts") },
  completion: {
    summary: "what a shell needs to complete commands and flags",
    load: () => import("./commands/completion.ts"),
  },
  bench: { summary: "the project's benchmark", load: () => import("./commands/bench.ts") },
}
