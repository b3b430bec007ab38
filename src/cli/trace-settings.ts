/** Reads OpenTelemetry's variables: whether, how and how many traces are exported. Loads nothing of OpenTelemetry. */
import { printable } from "../core/text.ts"
import { UsageError } from "./usage-error.ts"

export interface TraceSettings {
  readonly protocol: "http/json" | "http/protobuf"
  /** For the log. The exporter reads address, headers, timeout, compression and certificates from the environment itself. */
  readonly url: string
  readonly sampler: SamplerSettings
  readonly batch: {
    readonly scheduledDelayMillis?: number
    readonly exportTimeoutMillis?: number
    readonly maxQueueSize?: number
    readonly maxExportBatchSize?: number
  }
}

export interface SamplerSettings {
  readonly root: "always_on" | "always_off" | "traceidratio"
  readonly isParentBased: boolean
  readonly ratio: number
}

type Environment = { readonly [name: string]: string | undefined }

const PROTOCOLS = ["http/protobuf", "http/json"] as const
const ROOTS = ["always_on", "always_off", "traceidratio"] as const
const DEFAULT_URL = "http://localhost:4318/v1/traces"

const BATCH = {
  scheduledDelayMillis: "OTEL_BSP_SCHEDULE_DELAY",
  exportTimeoutMillis: "OTEL_BSP_EXPORT_TIMEOUT",
  maxQueueSize: "OTEL_BSP_MAX_QUEUE_SIZE",
  maxExportBatchSize: "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
} as const

/** Null: nothing is exported. */
export function traceSettings(environment: Environment): TraceSettings | null {
  const read = (name: string) => environment[name]?.trim() || null
  const exporter = read("OTEL_TRACES_EXPORTER")
  const isAsked = exporter === "otlp" || ENDPOINTS.some((name) => read(name) !== null)
  if (read("OTEL_SDK_DISABLED")?.toLowerCase() === "true" || exporter === "none" || !isAsked) return null
  if (exporter !== null && exporter !== "otlp")
    throw new UsageError(`OTEL_TRACES_EXPORTER must be otlp or none, and is ${printable(exporter)}`)
  return {
    protocol: protocolOf(read),
    url: urlOf(read),
    sampler: samplerOf(read),
    batch: Object.fromEntries(
      Object.entries(BATCH)
        .filter(([, name]) => read(name) !== null)
        .map(([option, name]) => [option, wholeNumber(name, read(name)!)]),
    ),
  }
}

const ENDPOINTS = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"] as const

function protocolOf(read: (name: string) => string | null): TraceSettings["protocol"] {
  const names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]
  const name = names.find((one) => read(one) !== null)
  if (name === undefined) return "http/protobuf"
  const protocol = PROTOCOLS.find((one) => one === read(name))
  if (protocol !== undefined) return protocol
  throw new UsageError(
    `${name} must be http/protobuf or http/json, and is ${printable(read(name)!)}; collectors take these on port 4318`,
  )
}

function urlOf(read: (name: string) => string | null): string {
  const name = ENDPOINTS.find((one) => read(one) !== null)
  if (name === undefined) return DEFAULT_URL
  const url = URL.parse(read(name)!)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(
      `${name} must be a URL such as http://localhost:4318, and is ${printable(read(name)!)}`,
    )
  url.username = ""
  url.password = ""
  return url.href
}

function samplerOf(read: (name: string) => string | null): SamplerSettings {
  const given = read("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on"
  const isParentBased = given.startsWith("parentbased_")
  const root = ROOTS.find((one) => one === given.replace("parentbased_", ""))
  if (root === undefined)
    throw new UsageError(
      `OTEL_TRACES_SAMPLER must be one of ${ROOTS.join(", ")}, or one of these after parentbased_, and is ${printable(given)}`,
    )
  const text = read("OTEL_TRACES_SAMPLER_ARG")
  const ratio = root !== "traceidratio" || text === null ? 1 : Number(text)
  if (!(ratio >= 0 && ratio <= 1))
    throw new UsageError(
      `OTEL_TRACES_SAMPLER_ARG must be a share from 0 to 1, such as 0.01, and is ${printable(text!)}`,
    )
  return { root, isParentBased, ratio }
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1)
    throw new UsageError(`${name} must be a whole number from 1 on, and is ${printable(text)}`)
  return number
}
