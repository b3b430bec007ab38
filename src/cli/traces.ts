/** Starts the export of traces if OpenTelemetry's variables ask for it. */
import type { Logger } from "../observe/log.ts"
import type { TraceExport } from "./trace-export.ts"
import { traceSettings } from "./trace-settings.ts"

/** Null: no traces, and nothing of OpenTelemetry's SDK is loaded. */
export async function openTraces(logger: Logger): Promise<TraceExport | null> {
  const settings = traceSettings(process.env)
  if (settings === null) return null
  const { startTraceExport } = await import("./trace-export.ts")
  return startTraceExport(settings, logger)
}
