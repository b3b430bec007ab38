/** Metrics of a process that accepts and two that deliver, on one PostgreSQL: added up, they are the receiver's ledger. */
import { expect, onTestFinished, test } from "vitest"
import { openPosthorn, type WebhookEvent } from "../../src/index.ts"
import { LOOPBACK } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"
import { seriesOf, total } from "../support/series.ts"
import { freshDatabase } from "../support/servers/postgres.ts"

const ENDPOINTS = 12
const MESSAGES = 40
const UNPROTECTED = { breaker: false, budget: false, adaptive: false, autoDisable: false } as const
const RETRY = { delays: [0.01], maxAttempts: 3, ...UNPROTECTED }

test("the counters of all processes add up to the ledger, and the store's gauges come from one process", async () => {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const store = await freshDatabase()
  const open = async (deliver: boolean) => {
    const options = { store, deliver, metrics: true, logger: "silent", egress: LOOPBACK } as const
    const posthorn = await openPosthorn({ ...options, retry: RETRY })
    onTestFinished(() => posthorn.close())
    return posthorn
  }
  const sender = await open(false)
  const workers = await Promise.all([open(true), open(true)])
  await sender.applications.create({ uid: "acme", name: "Acme" })
  for (let n = 0; n < ENDPOINTS; n++) {
    const path = `/${n}`
    await sender.endpoints.create("acme", { url: receiver.url(path) })
    // Every fourth endpoint never works, and every fourth works at the second attempt.
    if (n % 4 === 0) receiver.always(path, 500)
    const seen = new Set<string>()
    if (n % 4 === 1)
      receiver.always(path, ({ id }, response) => {
        response.writeHead(seen.has(id) ? 200 : 503).end()
        seen.add(id)
      })
  }
  const finished = new Promise<void>((resolve) => {
    // A process also hears of the deliveries of others.
    const ended = new Set<string>()
    const count = ({ webhook_delivery_id: id }: WebhookEvent) => {
      if (ended.add(id).size === ENDPOINTS * MESSAGES) resolve()
    }
    for (const worker of workers)
      for (const name of ["delivery.delivered", "delivery.dead"] as const) worker.on(name, count)
  })
  for (let n = 0; n < MESSAGES; n++) await sender.send("acme", { eventType: "a", payload: { n } })
  await finished
  for (const { monitor } of workers) await monitor!.runOnce()

  const texts = await Promise.all([sender, ...workers].map(({ registry }) => registry!.metrics()))
  const series = texts.flatMap(seriesOf)
  const received = receiver.requests.length
  expect(total(series, "posthorn_messages_accepted_total")).toBe(MESSAGES)
  expect(total(series, "posthorn_attempts_total")).toBe(received)
  expect(total(series, "posthorn_attempts_by_number_total")).toBe(received)
  expect(total(series, "posthorn_attempt_duration_seconds_count")).toBe(received)
  const byKind = (kind: string) => total(series, "posthorn_attempts_total", { kind })
  expect(byKind("first")).toBe(ENDPOINTS * MESSAGES)
  expect(byKind("retry")).toBe((ENDPOINTS / 4) * MESSAGES * 3)
  const bytes = receiver.requests.reduce((sum, { body }) => sum + body.length, 0)
  expect(total(series, "posthorn_attempt_bytes_total", { direction: "out" })).toBe(bytes)
  const outcome = (name: string) => total(series, "posthorn_deliveries_finished_total", { outcome: name })
  expect(outcome("exhausted")).toBe((ENDPOINTS / 4) * MESSAGES)
  expect(outcome("delivered")).toBe((ENDPOINTS * 3 * MESSAGES) / 4)

  expect(texts.filter((text) => /^posthorn_endpoints\{/m.test(text))).toHaveLength(1)
  expect(total(series, "posthorn_endpoints")).toBe(ENDPOINTS)
  expect(total(series, "posthorn_dead_letters", { reason: "exhausted" })).toBe((ENDPOINTS / 4) * MESSAGES)
})
