/** Seed 004, phase 6: its troubleshooting, with the debug queries as an operator types them. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

test('"Retries not scheduling": the debug query shows the jobs that wait, and until when', async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "jobs" })
  harness.receiver.queue("/", 500, 200)
  await harness.send({}, { maxAttempts: 10 })
  await harness.published("delivery.attempt", 1)
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.send({}, { delaySeconds: 90, maxAttempts: 3 })
  const jobs = await harness.sql(`
    SELECT id, type, attempts, max_attempts, available_at, status
    FROM jobs
    WHERE type = 'webhook_delivery'
    AND status = 'pending'
    ORDER BY available_at DESC
    LIMIT 10;`)
  const [failed, , delayed] = await harness.rows()
  const waiting = { type: "webhook_delivery", status: "pending" }
  expect(jobs).toEqual([
    { ...waiting, id: delayed?.id, attempts: 0, max_attempts: 3, available_at: "2031-05-18 18:01:30" },
    { ...waiting, id: failed?.id, attempts: 1, max_attempts: 10, available_at: "2031-05-18 18:00:01" },
  ])
})

test("\"Max attempts not exceeded\": a job's max_attempts is its policy's when the message has none of its own", async () => {
  const harness = await Harness.start()
  await harness.posthorn.applications.create({ uid: "acme", name: "Acme" })
  await harness.posthorn.policies.put("patient", { delays: [60], maxAttempts: 40 })
  await harness.endpoint({ retry: "jobs" }, "/preset")
  await harness.endpoint({ retry: "patient" }, "/named")
  await harness.endpoint({ retry: { delays: [60], maxAttempts: 4 } }, "/own")
  await harness.send()
  await harness.published("delivery.delivered", 3)
  const jobs = await harness.sql(`
    SELECT d.target_url, j.max_attempts FROM jobs j JOIN webhook_deliveries d ON d.id = j.id ORDER BY j.max_attempts`)
  expect(jobs).toEqual([
    { target_url: harness.receiver.url("/own"), max_attempts: 4 },
    { target_url: harness.receiver.url("/preset"), max_attempts: 6 },
    { target_url: harness.receiver.url("/named"), max_attempts: 40 },
  ])
})

test("example 2: the query for a subscriber's retry progress shows each delivery, its last code and its job", async () => {
  const harness = await Harness.start()
  const endpointId = await harness.endpoint({ retry: "jobs" })
  const other = await harness.endpoint({ retry: "jobs" }, "/other")
  harness.receiver.queue("/", 500, 503)
  await harness.send()
  await harness.published("delivery.attempt", 2)
  await harness.attemptAfter(1000)
  const progress = await harness.sql(
    `
    SELECT
        wl.id,
        wl.event,
        wl.attempts,
        wl.response_code,
        wl.created_at,
        j.status AS job_status,
        j.available_at AS next_retry
    FROM webhook_logs wl
    LEFT JOIN jobs j ON j.payload_json LIKE '%' || wl.id || '%'
    WHERE wl.subscriber_id = ?
    ORDER BY wl.created_at DESC
    LIMIT 20;`,
    endpointId,
  )
  const [row] = await harness.sql("SELECT id FROM webhook_deliveries WHERE webhook_id = ?", endpointId)
  expect(progress).toEqual([
    {
      id: row?.id,
      event: "invoice.paid",
      attempts: 2,
      response_code: 503,
      created_at: "2031-05-18 18:00:00",
      job_status: "pending",
      next_retry: "2031-05-18 18:00:06",
    },
  ])
  expect(
    await harness.sql("SELECT response_code, response_body FROM webhook_logs WHERE subscriber_id = ?", other),
  ).toEqual([{ response_code: 200, response_body: "ok" }])
})

test('"Max retries exceeded": the job is failed, and its response code is in webhook_logs', async () => {
  const harness = await Harness.start()
  await harness.endpoint({ retry: "jobs" })
  harness.receiver.always("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  for (const seconds of [1, 5, 30, 120, 600]) await harness.attemptAfter(seconds * 1000)
  expect(await harness.sql("SELECT status, attempts, error_text FROM jobs")).toEqual([
    { status: "failed", attempts: 6, error_text: "HTTP 500: answer 500" },
  ])
  expect(await harness.sql("SELECT attempts, response_code FROM webhook_logs")).toEqual([
    { attempts: 6, response_code: 500 },
  ])
})
