/** Exports the traces of `serve` and `worker` by OTLP over HTTP. The SDK is loaded only when OpenTelemetry's variables ask for it. */
import { type DiagLogger, DiagLogLevel, diag, trace } from "@opentelemetry/api"
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources"
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace"
import type { Logger } from "../observe/log.ts"
import { RetrySampler } from "../observe/opentelemetry/retry-sampler.ts"
import { Trouble } from "../observe/trouble.ts"
import { VERSION } from "../version.ts"
import type { SamplerSettings, TraceSettings } from "./trace-settings.ts"

/** A stop waits for this long at most until the last spans are sent. */
const FLUSH_MS = 3000

export interface TraceExport {
  /** Sends the last spans, within a bound. Never rejects. False: the time was up, and the exporter's own retries keep the process for ten seconds more. */
  close(): Promise<boolean>
}

export async function startTraceExport(settings: TraceSettings, logger: Logger): Promise<TraceExport> {
  diag.setLogger(diagnostics(logger), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  const exporter = new ReportingExporter(await createExporter(settings.protocol), settings.url, logger)
  const processor = new BatchSpanProcessor({ ...settings.batch, exporter })
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": "posthorn", "service.version": VERSION }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: new RetrySampler(createSampler(settings.sampler)),
    spanProcessors: [processor],
  })
  // False when a program that was preloaded has registered its own: the spans are that one's.
  trace.setGlobalTracerProvider(provider)
  return { close: () => shutDown(provider, logger) }
}

/** The two packages differ in the encoding alone. */
async function createExporter(protocol: TraceSettings["protocol"]): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    protocol === "http/json"
      ? await import("@opentelemetry/exporter-trace-otlp-http")
      : await import("@opentelemetry/exporter-trace-otlp-proto")
  return new OTLPTraceExporter()
}

function createSampler({ root, isParentBased, ratio }: SamplerSettings): Sampler {
  const samplers = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  }
  const sampler = samplers[root]()
  return isParentBased ? new ParentBasedSampler({ root: sampler }) : sampler
}

async function shutDown(provider: TracerProvider, logger: Logger): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), FLUSH_MS)
  })
  // The failure of an export is reported by the exporter.
  const ended = provider.shutdown().then(
    () => true,
    () => true,
  )
  const isInTime = await Promise.race([ended, late])
  clearTimeout(timer)
  if (!isInTime) logger.warn("The last spans could not be exported in time; they are lost")
  return isInTime
}

/** The SDK's warnings about variables that it ignores, and about dropped spans. Its errors are failed exports, which are reported below. */
function diagnostics(logger: Logger): DiagLogger {
  const quiet = (text: string) => logger.debug(`OpenTelemetry: ${text}`)
  const warn = (text: string) => logger.warn(`OpenTelemetry: ${text}`)
  return { error: quiet, warn, info: quiet, debug: quiet, verbose: quiet }
}

/** A collector that is down is one warning a minute at most, and one when it is back. */
class ReportingExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #trouble: Trouble

  constructor(exporter: SpanExporter, url: string, logger: Logger) {
    this.#exporter = exporter
    const texts = {
      begins: "Traces cannot be exported; deliveries go on without them",
      ends: "Traces are exported again",
    }
    this.#trouble = new Trouble(logger, texts, { collector: url }, () => performance.now())
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter["export"]>[1]): void {
    this.#exporter.export(spans, (result) => {
      if (result.error === undefined) this.#trouble.passed()
      else this.#trouble.failed(result.error)
      done(result)
    })
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush?.() ?? Promise.resolve()
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }
}
