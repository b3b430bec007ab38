/** A sampler or span processor of the host program may throw: that is no reason to lose a message or an outcome. */
import { diag } from "@opentelemetry/api"

/** Null after an error, which goes to OpenTelemetry's own log. */
export function safely<T>(work: () => T): T | null {
  try {
    return work()
  } catch (error) {
    diag.error("posthorn: tracing failed", error)
    return null
  }
}
