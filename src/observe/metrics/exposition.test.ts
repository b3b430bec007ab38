/** The two formats of a scrape. */
import { expect, test } from "vitest"
import { settledEvent } from "../../../test/support/events.ts"
import { expose } from "./exposition.ts"
import { Metrics } from "./metrics.ts"

const OPEN_METRICS =
  "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
const COUNTER = /^posthorn_deliveries_finished_total\{outcome="delivered"\} 1$/m

test("a scrape gets OpenMetrics if it accepts it, and the text format otherwise", async () => {
  const { registry, subscriber } = new Metrics("1.2.3")
  subscriber.handle(settledEvent())
  const open = await expose(registry, OPEN_METRICS)
  expect(open.contentType).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8")
  expect(open.text).toMatch(/^# TYPE posthorn_deliveries_finished counter$/m)
  expect(open.text).toMatch(COUNTER)
  expect(open.text).toMatch(/\n# EOF\n$/)
  for (const accept of [undefined, "*/*", "text/plain", "application/openmetrics-text;q=0"]) {
    const { contentType, text } = await expose(registry, accept)
    expect(contentType).toBe("text/plain; version=0.0.4; charset=utf-8")
    // The client renames counters while it writes OpenMetrics.
    expect(text).toMatch(/^# TYPE posthorn_deliveries_finished_total counter$/m)
    expect(text).toMatch(COUNTER)
    expect(text).not.toContain("# EOF")
  }
})

test("scrapes of both formats at once do not disturb each other", async () => {
  const { registry } = new Metrics("1.2.3")
  const accepts = [OPEN_METRICS, "text/plain", OPEN_METRICS, "text/plain"]
  const texts = await Promise.all(accepts.map((accept) => expose(registry, accept)))
  const names = texts.map(({ text }) => /^# TYPE (posthorn_messages_accepted\w*)/m.exec(text)![1])
  expect(names).toEqual([
    "posthorn_messages_accepted",
    "posthorn_messages_accepted_total",
    "posthorn_messages_accepted",
    "posthorn_messages_accepted_total",
  ])
})
