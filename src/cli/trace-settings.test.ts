import { expect, test } from "vitest"
import { traceSettings } from "./trace-settings.ts"

const OTEL_EXPORTER_OTLP_ENDPOINT = "http://collector:4318"

test("nothing is exported unless a variable asks for it", () => {
  expect(traceSettings({})).toBe(null)
  expect(traceSettings({ OTEL_SERVICE_NAME: "x", OTEL_TRACES_SAMPLER: "nonsense" })).toBe(null)
  expect(traceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: " " })).toBe(null)
  expect(traceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED: "True" })).toBe(null)
  expect(traceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER: "none" })).toBe(null)
})

test("an address is enough", () => {
  const sampler = { root: "always_on", isParentBased: true, ratio: 1 }
  expect(traceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT })).toEqual({
    protocol: "http/protobuf",
    url: "http://collector:4318/",
    sampler,
    batch: {},
  })
  expect(traceSettings({ OTEL_TRACES_EXPORTER: "otlp" })).toMatchObject({
    url: "http://localhost:4318/v1/traces",
  })
  const OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = "https://me:secret@traces.example.com/v1/traces"
  expect(traceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT })).toMatchObject({
    url: "https://traces.example.com/v1/traces",
  })
})

test("protocol, sampler and batches are read", () => {
  expect(
    traceSettings({
      OTEL_EXPORTER_OTLP_ENDPOINT,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.01",
      OTEL_BSP_SCHEDULE_DELAY: "100",
    }),
  ).toMatchObject({
    protocol: "http/json",
    sampler: { root: "traceidratio", isParentBased: true, ratio: 0.01 },
    batch: { scheduledDelayMillis: 100 },
  })
  expect(traceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER: "always_off" })).toMatchObject({
    sampler: { root: "always_off", isParentBased: false },
  })
})

test.each([
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json"],
  [{ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "x" }, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL must be"],
  [{ OTEL_TRACES_EXPORTER: "jaeger" }, "OTEL_TRACES_EXPORTER must be otlp or none, and is jaeger"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" }, "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL"],
  [{ OTEL_TRACES_SAMPLER: "jaeger_remote" }, "OTEL_TRACES_SAMPLER must be one of always_on"],
  [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" }, "OTEL_TRACES_SAMPLER_ARG must be"],
  [{ OTEL_BSP_MAX_QUEUE_SIZE: "many" }, "OTEL_BSP_MAX_QUEUE_SIZE must be a whole number"],
])("%j is refused with a sentence", (environment, sentence) => {
  expect(() => traceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, ...environment })).toThrow(sentence)
})
