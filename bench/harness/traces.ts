/** The export of traces as `posthorn serve` does it, to a collector that takes everything. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { startTraceExport } from "../../src/cli/trace-export.ts"
import { traceSettings } from "../../src/cli/trace-settings.ts"
import { createLogger } from "../../src/observe/log.ts"

export interface Traces {
  /** Batches of spans that have arrived. */
  readonly batches: () => number
  close(): Promise<void>
}

/** Registers the process's tracer provider: once in a process. */
export async function exportTraces(share: number): Promise<Traces> {
  let batches = 0
  const collector = createServer((request, response) => {
    request.resume().on("end", () => {
      batches++
      response.end()
    })
  })
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
  // The exporter reads its address from the environment.
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
  const settings = traceSettings({
    ...process.env,
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: `${share}`,
  })
  const exporting = await startTraceExport(settings!, createLogger("warn"))
  return {
    batches: () => batches,
    async close() {
      await exporting.close()
      collector.closeAllConnections()
      collector.close()
    },
  }
}
