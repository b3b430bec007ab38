/** `posthorn agents`: agents behind firewalls. */
import type { AgentOut } from "../../api/schemas/agent.ts"
import { path } from "../api.ts"
import { action, type Group, PAGE_FLAGS } from "../command.ts"
import { showList } from "../lists.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { APP } from "./shared.ts"

type Agent = Omit<AgentOut, "connectedSince" | "lastSeenAt"> & {
  readonly connectedSince: string | null
  readonly lastSeenAt: string | null
}

const APP_COLUMN: Column<Agent> = { title: "APP", value: ({ appId }) => appId, short: shortId }

const COLUMNS: readonly Column<Agent>[] = [
  { title: "NAME", value: ({ name }) => name, cut: true, least: 16 },
  { title: "STATE", value: stateOf },
  { title: "SINCE", value: sinceOf, short: shortTime },
  { title: "VERSION", value: ({ version }) => version, cut: true },
  { title: "IN FLIGHT", value: ({ inFlight }) => inFlight, right: true },
  { title: "ENDPOINTS", value: ({ endpoints }) => endpoints.length, right: true },
]

function stateOf({ connected, lastSeenAt }: Agent): string {
  if (connected) return "connected"
  return lastSeenAt === null ? "never seen" : "absent"
}

/** Since when it is connected, or absent. */
function sinceOf({ connected, connectedSince, lastSeenAt }: Agent): string | null {
  return time(connected ? connectedSince : lastSeenAt)
}

export const command: Group = {
  summary: "agents behind firewalls: who is connected, and who is not",
  bare: "list",
  actions: {
    list: action({
      summary: "list the agents of an application or of all, whether they are connected, and since when",
      args: [{ ...APP, optional: true }],
      flags: PAGE_FLAGS,
      examples: ["posthorn agents list", "posthorn agents list acme"],
      run: (run) => {
        const { app } = run.args
        return showList(run, {
          route: app === undefined ? "/agent" : path`/app/${app}/agent`,
          columns: app === undefined ? [APP_COLUMN, ...COLUMNS] : COLUMNS,
          none: "There are no agents: an endpoint with the URL relay://NAME expects one.",
        })
      },
    }),
    show: action({
      summary: "show an agent",
      args: [APP, { name: "name", about: "the NAME of relay://NAME" }],
      examples: ["posthorn agents show acme hub"],
      async run({ api, out, args }) {
        const agent = await api.get<Agent>(path`/app/${args.app}/agent/${args.name}`)
        const { connectedSince, lastSeenAt } = agent
        out.record(agent, { ...agent, connectedSince: time(connectedSince), lastSeenAt: time(lastSeenAt) })
      },
    }),
  },
}
