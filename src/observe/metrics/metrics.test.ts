/** Series of the registry: which exist from the start, and which can ever exist. */
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { settledEvent } from "../../../test/support/events.ts"
import { PosthornError } from "../../core/errors.ts"
import { Metrics } from "./metrics.ts"

const LEADER = [
  "posthorn_deliveries",
  "posthorn_oldest_due_timestamp_seconds",
  "posthorn_dead_letters",
  "posthorn_endpoints",
  "posthorn_snapshot_timestamp_seconds",
  "posthorn_alerts_firing",
]

const seriesOf = async ({ registry }: Metrics) =>
  (await registry.metrics())
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.slice(0, line.lastIndexOf(" ")))

test("10 000 endpoints and messages, every status and any path or method of a client add no series", async () => {
  const metrics = new Metrics("1.2.3")
  const { instruments, subscriber } = metrics
  const before = await seriesOf(metrics)
  for (let n = 0; n < 10_000; n++) {
    const responseStatus = n % 7 === 0 ? null : 100 + (n % 900)
    const event = settledEvent(
      { status: "failed", nextRetryAt: 5000 + n },
      { status: "failed", responseStatus, attemptNumber: 1 + (n % 30), startedAt: 500, durationMs: n },
    )
    const delivery = { ...event.delivery, id: `dlv_${n}`, messageId: `msg_${n}`, eventType: `type.${n}` }
    subscriber.handle({ ...event, delivery, endpointId: `ep_${n}`, appId: `app_${n}` })
    instruments.storeFailed(new PosthornError("store_full", `no room for ${n}`))
    instruments.redisFailed(new Error(`redis://10.0.0.${n % 256}`))
  }
  expect(await seriesOf(metrics)).toEqual(before)
  for (let n = 0; n < 10_000; n++) instruments.requestAnswered(`METHOD${n}`, null, 404, 1)
  const [added, ...others] = (await seriesOf(metrics)).filter((series) => !before.includes(series))
  expect(added).toBe('posthorn_api_requests_total{method="other",route="none",status="404"}')
  expect(others).toEqual([])
})

test("counters are exported as 0 before anything happens", async () => {
  const text = await new Metrics("1.2.3").registry.metrics()
  for (const series of [
    'posthorn_attempts_total{result="failed",status_class="5xx",kind="probe"}',
    'posthorn_attempts_by_number_total{number="10+",result="succeeded"}',
    'posthorn_deliveries_finished_total{outcome="exhausted"}',
    'posthorn_attempt_duration_seconds_count{result="failed"}',
    'posthorn_breaker_transitions_total{to="half_open"}',
    'posthorn_store_errors_total{code="store_full"}',
    "posthorn_messages_accepted_total",
    "posthorn_leases_lost_total",
    "posthorn_own_outage",
  ])
    expect(text.split("\n")).toContain(`${series} 0`)
  expect(text).toContain(`posthorn_build_info{version="1.2.3",node="${process.versions.node}"} 1`)
})

test("only the leader has the gauges of the whole store", async () => {
  const metrics = new Metrics("1.2.3")
  const { storeWide } = metrics
  const namesOf = async () => {
    const names = (await seriesOf(metrics)).map((series) => series.split("{")[0]!)
    return LEADER.filter((name) => names.includes(name))
  }
  expect(await namesOf()).toEqual([])
  const numbers = {
    at: 90_500,
    deliveries: { due: 3, scheduled: 0, retrying: 2, held: 1 },
    oldestDue: { at: 60_000 },
    deadLetters: [{ reason: "exhausted", count: 7 }],
    endpoints: { healthy: 5, degraded: 0, failing: 1, open: 0, offline: 0, paused: 0, disabled: 0 },
  } as const
  storeWide.snapshot(numbers)
  storeWide.watchAlerts(() => ({ "oldest-due": 1, disk: 0 }))
  expect(await namesOf()).toEqual(LEADER)
  const text = await metrics.registry.metrics()
  for (const line of [
    'posthorn_deliveries{state="due"} 3',
    "posthorn_oldest_due_timestamp_seconds 60",
    'posthorn_dead_letters{reason="exhausted"} 7',
    'posthorn_dead_letters{reason="gone"} 0',
    'posthorn_endpoints{health="failing"} 1',
    'posthorn_endpoints{health="open"} 0',
    "posthorn_snapshot_timestamp_seconds 90.5",
    'posthorn_alerts_firing{rule="oldest-due"} 1',
    'posthorn_alerts_firing{rule="disk"} 0',
  ])
    expect(text.split("\n")).toContain(line)
  storeWide.snapshot({ ...numbers, oldestDue: null })
  expect(await namesOf()).not.toContain("posthorn_oldest_due_timestamp_seconds")

  storeWide.watchAlerts(() => ({}))
  storeWide.stoodDown()
  expect(await namesOf()).toEqual([])
  storeWide.snapshot(numbers)
  // Its lease ran out while the store could not be reached.
  storeWide.watchLeader(() => false)
  expect(await namesOf()).toEqual([])
})

test("docs/observability.md has every metric with its type, its labels and its meaning", () => {
  const page = readFileSync(new URL("../../../docs/observability.md", import.meta.url), "utf8")
  const rows = page.split("\n").filter((line) => line.startsWith("| `posthorn_"))
  const metrics = new Metrics("1.2.3").registry.getMetricsAsArray() as unknown as {
    readonly name: string
    readonly type: string
    readonly help: string
    readonly labelNames: readonly string[]
  }[]
  const known = metrics.map(({ name, type, help, labelNames }) => {
    const labels = labelNames.length === 0 ? "–" : labelNames.map((label) => `\`${label}\``).join(", ")
    const where = LEADER.includes(name) ? ", leader" : ""
    return `| \`${name}\` | ${type}${where} | ${labels} | ${help} |`
  })
  expect(rows.toSorted()).toEqual(known.toSorted())
})
