/** A real Prometheus scrapes a server and two workers under load: its answers are compared with the receiver's ledger. */
import { execFileSync } from "node:child_process"
import { expect, test } from "vitest"
import type { Receiver } from "../support/receiver.ts"
import { requireTool } from "../support/tools.ts"
import { fillIn, metricsOf, operandsOf, queries, rules } from "./deploy-files.ts"
import { ScrapedSite, WORKER_SLOTS } from "./scraped-site.ts"

/** 35 s on an idle machine: two of the leader's snapshots, which are 15 s apart, and the starts of four programs. */
const PATIENCE = { timeout: 240_000 }

const UNPROTECTED = { breaker: false, budget: false, autoDisable: false }
/** Endpoints by path and event type: how many messages they get, their statuses by attempt (the last one stays), their settings. */
const ENDPOINTS = {
  flaky: { messages: 30, statuses: [500, 200], retry: { delays: [1], maxAttempts: 3, ...UNPROTECTED } },
  down: { messages: 12, statuses: [503], retry: { delays: [1], maxAttempts: 2, ...UNPROTECTED } },
  refuses: { messages: 5, statuses: [400], retry: { delays: [1], maxAttempts: 3, retryable: "5xx" } },
  later: { messages: 2, statuses: [500], retry: { delays: [3600], maxAttempts: 2 } },
  paused: { messages: 3, statuses: [200] },
} as const
const OK_PATHS = ["ok-1", "ok-2", "ok-3", "ok-4", "ok-5", "ok-6"]
const OK_MESSAGES = 50
/** One more than the slots of a worker: both workers have a request that waits here. */
const SLOW_PATHS = Array.from({ length: WORKER_SLOTS + 1 }, (_, n) => `slow-${n}`)
const SLOW_MESSAGES = 4
const PATHS = [...OK_PATHS, ...SLOW_PATHS, ...Object.keys(ENDPOINTS)]
const SLOW_DELIVERIES = SLOW_PATHS.length * SLOW_MESSAGES
const ENDED = {
  delivered: OK_PATHS.length * OK_MESSAGES + SLOW_DELIVERIES + ENDPOINTS.flaky.messages,
  exhausted: ENDPOINTS.down.messages,
  rejected: ENDPOINTS.refuses.messages,
}

type Path = keyof typeof ENDPOINTS

/** The status that the receiver gives to the n-th request for a message, except to those that are held. */
function statusOf(path: string, number: number): number {
  const statuses: readonly number[] = ENDPOINTS[path as Path]?.statuses ?? [200]
  return statuses[Math.min(number, statuses.length) - 1]!
}

/** Answers as the table says, with a body of ten bytes. Requests to the slow endpoints wait for the function that comes back. */
function answerAll(receiver: Receiver): () => void {
  const seen = new Map<string, number>()
  let waiting: (() => void)[] | null = []
  for (const path of PATHS)
    receiver.always(`/${path}`, ({ id }, response) => {
      const number = (seen.get(path + id) ?? 0) + 1
      seen.set(path + id, number)
      const answer = () => void response.writeHead(statusOf(path, number)).end("0123456789")
      if (SLOW_PATHS.includes(path) && waiting !== null) waiting.push(answer)
      else answer()
    })
  return () => {
    for (const answer of waiting ?? []) answer()
    waiting = null
  }
}

/** Resolves with the number of messages when Prometheus has seen that all are accepted. */
async function load(site: ScrapedSite): Promise<number> {
  await site.call("/app", { uid: "acme", name: "Acme" })
  const endpoint = (uid: string, type: string, more = {}) =>
    site.call("/app/acme/endpoint", { uid, url: site.receiver.url(`/${uid}`), filterTypes: [type], ...more })
  for (const path of OK_PATHS) await endpoint(path, "ok")
  for (const path of SLOW_PATHS) await endpoint(path, "slow", { concurrency: 1 })
  for (const [path, { messages: _, statuses: __, ...more }] of Object.entries(ENDPOINTS))
    await endpoint(path, path, more)
  await site.call("/app/acme/endpoint/paused/pause", {})
  const types = Object.entries(ENDPOINTS).map(([type, { messages }]) => [type, messages] as const)
  const fanned = [["ok", OK_MESSAGES] as const, ["slow", SLOW_MESSAGES] as const]
  const sends = [...fanned, ...types].flatMap(([eventType, messages]) =>
    Array.from({ length: messages }, (_, n) => ({ eventType, payload: { n } })),
  )
  let accepted = 0
  // In two parts, with a scrape between them: a series that appears with its first request shows no increase before its second.
  for (const part of [sends.filter((_, n) => n % 2 === 0), sends.filter((_, n) => n % 2 === 1)]) {
    await Promise.all(part.map((message) => site.call("/app/acme/msg", message)))
    accepted += part.length
    await site.value("sum(posthorn_messages_accepted_total)", accepted)
  }
  return accepted
}

/** The receiver's ledger in the words of the metrics. */
function ledgerOf({ requests }: Receiver) {
  const seen = new Map<string, number>()
  const attempts = requests.map(({ path, id, body }) => {
    const number = (seen.get(path + id) ?? 0) + 1
    seen.set(path + id, number)
    const status = statusOf(path.slice(1), number)
    const result = status === 200 ? "succeeded" : "failed"
    return { number, result, statusClass: `${status}`.replace(/..$/, "xx"), bytes: body.length }
  })
  return {
    byStatus: countBy(attempts, ({ result, statusClass }) => `${result} ${statusClass}`),
    byKind: countBy(attempts, ({ number, result }) => `${number === 1 ? "first" : "retry"} ${result}`),
    byNumber: countBy(attempts, ({ number, result }) => `${number} ${result}`),
    byResult: countBy(attempts, ({ result }) => result),
    firstAttempts: attempts.filter(({ number }) => number === 1).length,
    total: attempts.length,
    bytes: attempts.reduce((sum, { bytes }) => sum + bytes, 0),
  }
}

function countBy<T>(all: readonly T[], key: (one: T) => string): { [key: string]: number } {
  const counts: { [key: string]: number } = {}
  for (const one of all) counts[key(one)] = (counts[key(one)] ?? 0) + 1
  return counts
}

test(
  "a Prometheus that scrapes a server and two workers agrees with the receiver's ledger",
  PATIENCE,
  async () => {
    const site = await ScrapedSite.start()
    const answerSlow = answerAll(site.receiver)
    const accepted = await load(site)
    await Promise.all(SLOW_PATHS.map((path) => site.receiver.arrived(`/${path}`, 1)))

    await storeIsCountedOnce(site)
    // Recording rules have their first values one evaluation later.
    await expect.poll(() => queriesWithoutData(site), { timeout: 10_000 }).toEqual([])
    const evaluated = await site.prometheus.rules()
    expect(evaluated.filter(({ health }) => health !== "ok")).toEqual([])
    expect(evaluated).toHaveLength(rules.length)
    await site.value('ALERTS{alertname="PosthornDeadLettersGrowing",alertstate="firing"}', 1)
    for (const target of site.targets) expect(lint(await site.metrics(target)), target).toBe("")

    answerSlow()
    const finished = Object.values(ENDED).reduce((sum, count) => sum + count)
    await site.value("sum(posthorn_deliveries_finished_total)", finished)
    const ledger = ledgerOf(site.receiver)
    const sum = async (...labels: string[]) => {
      const [metric, ...by] = labels
      const samples = await site.prometheus.query(`sum by (${by}) (${metric}) > 0`)
      return Object.fromEntries(
        samples.map((sample) => [by.map((label) => sample.metric[label]).join(" "), sample.value]),
      )
    }
    expect(await sum("posthorn_deliveries_finished_total", "outcome")).toEqual(ENDED)
    expect(await sum("posthorn_attempts_total", "result", "status_class")).toEqual(ledger.byStatus)
    expect(await sum("posthorn_attempts_total", "kind", "result")).toEqual(ledger.byKind)
    expect(await sum("posthorn_attempts_by_number_total", "number", "result")).toEqual(ledger.byNumber)
    expect(await sum("posthorn_attempt_duration_seconds_count", "result")).toEqual(ledger.byResult)
    expect(await sum("posthorn_attempt_bytes_total", "direction")).toEqual({
      out: ledger.bytes,
      in: ledger.total * 10,
    })
    expect(await sum("posthorn_first_attempt_delay_seconds_count")).toEqual({ "": ledger.firstAttempts })
    expect(await sum("posthorn_delivery_duration_seconds_count")).toEqual({ "": ENDED.delivered })
    expect(await sum("posthorn_messages_accepted_total")).toEqual({ "": accepted })
    expect(
      await sum('posthorn_api_requests_total{route="/api/v1/app/:app_id/msg"}', "method", "status"),
    ).toEqual({
      "POST 202": accepted,
    })
    await site.value("count(sum by (instance) (posthorn_attempts_total) > 0)", 2)

    // The next snapshot: by now the other worker has looked whether it should lead, too.
    await site.value('sum(posthorn_deliveries{state="due"})', 0)
    await site.value("absent(posthorn_oldest_due_timestamp_seconds)", 1)
    await site.value("max_over_time(count(posthorn_snapshot_timestamp_seconds)[5m:1s])", 1)
    await site.value("max_over_time(sum(posthorn_endpoints)[5m:1s])", PATHS.length)
  },
)

/** Two workers watch the store, and one of them reports. */
async function storeIsCountedOnce(site: ScrapedSite): Promise<void> {
  const { exhausted, rejected } = ENDED
  await site.value("sum(posthorn_dead_letters)", exhausted + rejected)
  await site.value('sum(posthorn_deliveries{state="held"})', ENDPOINTS.paused.messages)
  await site.value('sum(posthorn_deliveries{state="retrying"})', ENDPOINTS.later.messages)
  await site.value('sum(posthorn_deliveries{state="due"})', SLOW_DELIVERIES)
  await site.value("sum(posthorn_endpoints)", PATHS.length)
  for (const metric of ["posthorn_snapshot_timestamp_seconds", "posthorn_oldest_due_timestamp_seconds"])
    await site.value(`count(${metric})`, 1)
}

/** Queries of panels, recording rules and operands of alerts whose answer has no number. */
async function queriesWithoutData({ prometheus }: ScrapedSite): Promise<string[]> {
  const panels = queries.map(({ panel, expr }) => ({ name: panel, expr: fillIn(expr, "1m", "5m") }))
  const ruled = rules.flatMap(({ record, alert, expr }) =>
    record === undefined
      ? operandsOf(expr).map((operand) => ({ name: alert!, expr: operand }))
      : [{ name: record, expr }],
  )
  expect(metricsOf(ruled.map(({ expr }) => expr).join(" ")).length).toBeGreaterThan(20)
  const answered = await Promise.all(
    [...panels, ...ruled].map(async ({ name, expr }) => {
      const samples = await prometheus.query(expr)
      return { text: `${name}: ${expr}`, hasData: samples.some(({ value }) => Number.isFinite(value)) }
    }),
  )
  return answered.filter(({ hasData }) => !hasData).map(({ text }) => text)
}

/** What promtool says about the metrics of a process; nothing if all is well. */
function lint(metrics: string): string {
  const promtool = requireTool("promtool", "prometheus")
  try {
    return execFileSync(promtool, ["check", "metrics"], { input: metrics, encoding: "utf8", stdio: "pipe" })
  } catch (error) {
    return (error as { stderr: string }).stderr
  }
}
