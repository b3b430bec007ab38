/** `posthorn endpoints health` and `--health`: the health of endpoints. */

import type { EndpointHealthOut } from "../../api/schemas/endpoint-health.ts"
import { HEALTH_STATES } from "../../core/health.ts"
import { percentText } from "../../core/wording.ts"
import { type Api, path } from "../api.ts"
import { action, type PAGE_FLAGS } from "../command.ts"
import { choice, type Given, on } from "../flag.ts"
import { type List, readList } from "../lists.ts"
import type { Output } from "../output.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { APP, ENDPOINT, endpointName } from "./shared.ts"

export const HEALTH_FLAGS = {
  health: on("the health of each, the worst first"),
  state: choice(HEALTH_STATES, "with --health: only endpoints in this state"),
} as const

const APP_COLUMN: Column<EndpointHealthOut> = {
  title: "APP",
  value: ({ appId }) => appId,
  short: shortId,
  minor: true,
}
const COLUMNS: readonly Column<EndpointHealthOut>[] = [
  { title: "ENDPOINT", value: endpointName, short: shortId, cut: true, least: 12 },
  { title: "HEALTH", value: ({ health }) => health },
  { title: "SINCE", value: ({ since }) => time(since), short: shortTime },
  { title: "1H", value: ({ lastHour }) => rateText(lastHour.successRate), right: true },
  { title: "24H", value: ({ lastDay }) => rateText(lastDay.successRate), right: true, minor: true },
  { title: "P95", value: ({ lastHour }) => msText(lastHour.p95Ms), right: true, minor: true },
  { title: "FAILURES", value: ({ failures }) => failures, right: true, minor: true },
  {
    title: "OLDEST WAITING",
    value: ({ oldestWaitingAt }) => time(oldestWaitingAt),
    short: shortTime,
    minor: true,
  },
  { title: "WHY", value: ({ why }) => why, short: shortWhy, cut: true, least: 24 },
]

/** The last error first, since the end may be cut. The success rate of the last hour has its own column. */
export function shortWhy(why: string): string {
  const withoutRate = why.replace(/^\S+ % of \d+ attempts? in the last hour succeeded; /, "")
  return withoutRate.replace(/^(.+?); (last error: .+)$/, "$2; $1")
}

const rateText = (rate: number | null) => (rate === null ? null : percentText(rate))
const msText = (ms: number | null) => (ms === null ? null : `${ms} ms`)

export const health = action({
  summary: "whether an endpoint is healthy; if not, since when and why",
  args: [APP, ENDPOINT],
  examples: ["posthorn endpoints health acme main"],
  async run({ api, out, args }) {
    const found = await api.get<EndpointHealthOut>(path`/app/${args.app}/endpoint/${args.endpoint}/health`)
    const { since, lastSuccessAt, oldestWaitingAt, lastHour, lastDay, ...rest } = found
    out.record(found, {
      ...rest,
      since: time(since),
      lastHour: windowText(lastHour),
      lastDay: windowText(lastDay),
      lastSuccessAt: time(lastSuccessAt),
      oldestWaitingAt: time(oldestWaitingAt),
    })
  },
})

function windowText({ attempts, successRate, p95Ms }: EndpointHealthOut["lastHour"]): string {
  if (successRate === null) return "no attempts"
  return `${percentText(successRate)} of ${attempts} succeeded, p95 ${msText(p95Ms)}`
}

interface HealthRun {
  readonly api: Api
  readonly out: Output
  readonly flags: Given<typeof PAGE_FLAGS & typeof HEALTH_FLAGS>
}

/** Of an application, or of all. */
export async function showHealth(
  { api, out, flags }: HealthRun,
  app: string | undefined,
): Promise<undefined> {
  const route = app === undefined ? "/endpoint-health" : path`/app/${app}/endpoint-health`
  const { state, iterator, limit } = flags
  // The API refuses a limit of 0.
  const isSorted = state === undefined && iterator === undefined && limit !== 0
  const list = isSorted
    ? await worstFirst(api, route, flags)
    : await readList<EndpointHealthOut>(api, route, { health: state }, flags)
  const columns = app === undefined ? [APP_COLUMN, ...COLUMNS] : COLUMNS
  out.table(list, list.data, columns, "There are no such endpoints.")
  if (!list.done) out.note("There are more: --all shows everything, --limit N the first N.")
}

/** The API lists by id. Endpoints in trouble are few: all of them are read and sorted, then healthy ones fill the rest. */
async function worstFirst(
  api: Api,
  route: string,
  flags: HealthRun["flags"],
): Promise<List<EndpointHealthOut>> {
  const { limit = 50, all = false } = flags
  const read = (states: readonly string[], upTo: Given<typeof PAGE_FLAGS>) =>
    readList<EndpointHealthOut>(api, route, { health: states }, upTo)
  const troubled = await read(HEALTH_STATES.slice(1), { all: true })
  const rank = ({ health: state }: EndpointHealthOut) => HEALTH_STATES.indexOf(state)
  const worst = troubled.data.toSorted((a, b) => rank(b) - rank(a))
  const left = Math.max(1, limit - worst.length)
  const healthy = await read(HEALTH_STATES.slice(0, 1), all ? { all } : { limit: left })
  const rows = [...worst, ...healthy.data]
  const data = all ? rows : rows.slice(0, limit)
  return { data, iterator: null, done: healthy.done && data.length === rows.length }
}
