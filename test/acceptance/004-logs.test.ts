/** Seed 004, phase 6: the log lines in its words. */
import { type Logger, pino } from "pino"
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const INFO = 30
const ERROR = 50

function recordingLogger(level = "info"): { logger: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = []
  return { lines, logger: pino({ level }, { write: (line: string) => void lines.push(JSON.parse(line)) }) }
}

test("success, retry and permanent failure are logged in the seed's words with its fields", async () => {
  const { logger, lines } = recordingLogger()
  const harness = await Harness.start({ logger })
  const endpointId = await harness.endpoint({ retry: "jobs" })
  harness.receiver.queue("/", 503)
  const messageId = await harness.send({}, { maxAttempts: 2 })
  await harness.published("delivery.attempt", 1)
  const answer = harness.receiver.hold("/")
  harness.clock.advance(1000)
  await harness.receiver.arrived("/", 2)
  harness.clock.advance(120)
  answer(200)
  await harness.published("delivery.delivered", 1)

  harness.receiver.always("/", 404)
  const failedId = await harness.send({}, { maxAttempts: 1 })
  await harness.published("delivery.dead", 1)

  const [delivered, failed] = await harness.rows()
  const subscriber = { subscriber_id: endpointId, endpoint_id: endpointId, event_type: "invoice.paid" }
  const first = { ...subscriber, delivery_id: delivered?.id, message_id: messageId }
  expect(lines.filter(({ msg }) => String(msg).startsWith("Webhook delivery"))).toMatchObject([
    {
      ...first,
      level: INFO,
      msg: "Webhook delivery scheduled for retry",
      http_code: 503,
      success: false,
      attempts: 1,
      next_attempt: 2,
      delay_seconds: 1,
    },
    {
      ...first,
      level: INFO,
      msg: "Webhook delivery completed",
      http_code: 200,
      success: true,
      attempts: 2,
      duration_ms: 120,
    },
    {
      ...subscriber,
      level: ERROR,
      msg: "Webhook delivery failed permanently",
      delivery_id: failed?.id,
      message_id: failedId,
      attempts: 1,
      final_http_code: 404,
    },
  ])
})

test("at level error only permanent failures are logged", async () => {
  const { logger, lines } = recordingLogger("error")
  const harness = await Harness.start({ logger })
  await harness.endpoint({ retry: "jobs" })
  harness.receiver.queue("/", 200, 500)
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.send({}, { maxAttempts: 1 })
  await harness.published("delivery.dead", 1)
  expect(lines.map(({ msg }) => msg)).toEqual(["Webhook delivery failed permanently"])
})
