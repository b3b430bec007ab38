/** `posthorn cost`: what retries cost, and what fewer would. */

import type { CostReportOut } from "../../api/schemas/cost.ts"
import { bytesText, percentText } from "../../core/wording.ts"
import { path } from "../api.ts"
import { action, type Command, TABLE_FLAGS } from "../command.ts"
import { choice, on, text, wholeNumber } from "../flag.ts"
import type { Output } from "../output.ts"
import { type Column, shortId, time } from "../table.ts"
import { moment, span, spanText } from "../time-flags.ts"
import { UsageError } from "../usage-error.ts"

const GROUPINGS = ["endpoint", "application", "event-type", "policy"] as const

type Cost = CostReportOut["total"]
type Group = NonNullable<CostReportOut["groups"]>[number]
type Yield = CostReportOut["byAttempt"][number]

export const command: Command = action({
  summary: "what retries cost: attempts for each delivered, yield of the n-th attempt, bytes, seconds, money",
  about: "Reads hourly sums, which are kept for 90 days. Prices are the setting cost of the server.",
  flags: {
    ...TABLE_FLAGS,
    app: text("APP", "of this application, by id or uid"),
    endpoint: text("ENDPOINT", "of this endpoint of it, by id or uid", { field: "endpoint_id" }),
    "event-type": text("TYPE", "of this event type", { field: "event_type" }),
    since: moment("attempts from this hour on (7d)", "before", { field: "since" }),
    until: moment("attempts before the end of this hour (now)", "before", { field: "until" }),
    by: choice(GROUPINGS, "one row for each, the most expensive first"),
    failing: on("the most expensive endpoints that fail now", { field: "failing" }),
    limit: wholeNumber("N", "the most rows of --by (50) and --failing (10)", { field: "limit" }),
    "max-attempts": wholeNumber("N", "what if deliveries were given up after N attempts?", {
      field: "max_attempts",
    }),
    "max-age": span("what if deliveries were given up at this age?", { field: "max_age" }),
  },
  examples: [
    "posthorn cost",
    "posthorn cost --by endpoint --since 30d",
    "posthorn cost --failing",
    "posthorn cost --app acme --max-attempts 1",
  ],
  async run({ api, out, flags, fields }) {
    const { app, endpoint, by } = flags
    if (endpoint !== undefined && app === undefined)
      throw new UsageError("--app is missing: the application of the endpoint")
    const route = app === undefined ? "/statistics/cost" : path`/app/${app}/statistics/cost`
    const grouping = by === "event-type" ? "eventType" : by
    const query = { ...fields, ...(grouping === undefined ? {} : { by: grouping }) }
    const report = await api.get<CostReportOut>(route, query)
    if (report.groups !== null) showGroups(out, report, report.groups, by ?? "endpoint")
    else showTotal(out, report)
    if (report.whatIf !== null && !out.json) out.say(report.whatIf, report.whatIf.text)
  },
})

function showTotal(out: Output, report: CostReportOut): void {
  const { total, byAttempt, since, until, currency } = report
  out.record(report, {
    from: time(since),
    to: time(until),
    attempts: total.attempts,
    delivered: total.delivered,
    dead: total.dead,
    "attempts for each delivered": ratioText(total.attemptsPerDelivered),
    "wasted attempts": shareText(total.wastedShare),
    retries: total.retries,
    "retries that delivered": shareText(total.retrySuccessRate),
    "bytes out": bytesText(total.bytesOut),
    "bytes in": bytesText(total.bytesIn),
    "time of slots": spanText(Math.round(total.slotSeconds)),
    ...(currency === null ? {} : { price: moneyText(total, currency) }),
  })
  if (!out.json && byAttempt.length > 0) out.table(report, byAttempt, YIELD_COLUMNS, "")
}

function showGroups(out: Output, report: CostReportOut, groups: readonly Group[], by: string): void {
  const { currency, groupsLeftOut } = report
  const columns = [
    ...nameColumns(by),
    ...COST_COLUMNS,
    ...(currency === null ? [] : [priceColumn(currency)]),
    ...(groups.some(({ health }) => health !== null) ? HEALTH_COLUMNS : []),
  ]
  out.table(report, groups, columns, "There were no such attempts.")
  if (groupsLeftOut > 0) out.note(`There are ${groupsLeftOut} more: --limit N shows up to 250.`)
}

const nameColumns = (by: string): readonly Column<Group>[] => [
  {
    title: by.toUpperCase().replace("-", " "),
    value: ({ name, key }) => name ?? key,
    short: shortId,
    cut: true,
    least: 12,
  },
]
const COST_COLUMNS: readonly Column<Group>[] = [
  { title: "ATTEMPTS", value: ({ attempts }) => attempts, right: true },
  { title: "DELIVERED", value: ({ delivered }) => delivered, right: true },
  { title: "DEAD", value: ({ dead }) => dead, right: true, minor: true },
  { title: "EACH", value: ({ attemptsPerDelivered }) => ratioText(attemptsPerDelivered), right: true },
  { title: "WASTED", value: ({ wastedShare }) => shareText(wastedShare), right: true },
  { title: "RETRIES OK", value: (one) => shareText(one.retrySuccessRate), right: true, minor: true },
  { title: "OUT", value: ({ bytesOut }) => bytesText(bytesOut), right: true, minor: true },
  { title: "SLOTS", value: (one) => spanText(Math.round(one.slotSeconds)), right: true, minor: true },
]
const HEALTH_COLUMNS: readonly Column<Group>[] = [
  { title: "HEALTH", value: ({ health }) => health },
  { title: "WHY", value: ({ why }) => why, cut: true, least: 24, minor: true },
]
const YIELD_COLUMNS: readonly Column<Yield>[] = [
  { title: "ATTEMPT", value: ({ number }) => (number === 20 ? "20+" : number), right: true },
  { title: "ATTEMPTS", value: ({ attempts }) => attempts, right: true },
  { title: "DELIVERED", value: ({ delivered }) => delivered, right: true },
  { title: "SUCCEEDED", value: ({ successRate }) => shareText(successRate), right: true },
  { title: "OF COST", value: ({ costShare }) => shareText(costShare), right: true },
  { title: "OF DELIVERED", value: ({ deliveredShare }) => shareText(deliveredShare), right: true },
]

const priceColumn = (currency: string): Column<Group> => ({
  title: currency,
  value: (group) => moneyText(group),
  right: true,
})

const shareText = (share: number | null) => (share === null ? null : percentText(share))
const ratioText = (ratio: number | null) => (ratio === null ? null : ratio.toFixed(2))

/** `1.25 EUR`; cents of a cent are shown where there is nothing more. */
function moneyText({ price }: Pick<Cost, "price">, currency?: string): string | null {
  if (price === null) return null
  const amount = price.toFixed(price > 0 && price < 0.1 ? 6 : 2)
  return currency === undefined ? amount : `${amount} ${currency}`
}
