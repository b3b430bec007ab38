/** A request that failed: the cause that a tenant sees, and a detail for the operator's log. */
import type { FailureCause } from "../core/failure-causes.ts"

export class TransportError extends Error {
  readonly failure: FailureCause

  constructor(failure: FailureCause, detail: string) {
    super(detail)
    this.name = "TransportError"
    this.failure = failure
  }
}
