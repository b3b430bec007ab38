import { diag, trace } from "@opentelemetry/api"
import { expect, onTestFinished, test, vi } from "vitest"
import { Receiver } from "../../test/support/receiver.ts"
import { createLogger } from "../observe/log.ts"
import { startTraceExport } from "./trace-export.ts"
import { traceSettings } from "./trace-settings.ts"

async function started(collector: Receiver) {
  vi.stubEnv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.url("/v1/traces"))
  onTestFinished(async () => {
    vi.useRealTimers()
    vi.unstubAllEnvs()
    trace.disable()
    diag.disable()
    await collector.close()
  })
  const traces = await startTraceExport(traceSettings(process.env)!, createLogger("silent"))
  trace.getTracer("test").startSpan("one").end()
  return traces
}

test("a close sends the last spans", async () => {
  const collector = await Receiver.start()
  const traces = await started(collector)
  expect(await traces.close()).toBe(true)
  expect(collector.requests).toHaveLength(1)
})

test("a close that comes to its bound says so, and leaves the end of the process to its caller", async () => {
  const exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never)
  onTestFinished(() => exit.mockRestore())
  const collector = await Receiver.start()
  collector.hold("/v1/traces")
  const traces = await started(collector)
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  const closing = traces.close()
  await collector.arrived("/v1/traces", 1)
  await vi.advanceTimersByTimeAsync(3500)
  expect(await closing).toBe(false)
  expect(exit).not.toHaveBeenCalled()
})
