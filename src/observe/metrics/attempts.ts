/** Counters and durations of attempts. */
import { Histogram, type Registry } from "@prometheus-io/client"
import { ATTEMPT_KINDS, type AttemptKind } from "../../core/attempt-kind.ts"
import type { DeliveryEvent } from "../event-stream.ts"
import { type Cell, cellsBy, countedBy } from "./cells.ts"

const RESULTS = ["succeeded", "failed"] as const
type Result = (typeof RESULTS)[number]
/** `none`: no response. */
const STATUS_CLASSES = ["2xx", "3xx", "4xx", "5xx", "none"] as const
type StatusClass = (typeof STATUS_CLASSES)[number]
const CLASS_OF: { readonly [hundreds: number]: StatusClass } = { 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx" }
const NUMBERS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10+"] as const
/** Those of the HTTP conventions, and the timeouts of 15 s to a minute. */
const DURATION_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 15, 30, 60,
]

type Attempt = NonNullable<DeliveryEvent["attempt"]>
type CellsOf<V extends string> = { readonly [value in V]: Cell }

/** The cells of one kind of attempt. */
interface KindCells {
  readonly attempts: { readonly [result in Result]: CellsOf<StatusClass> }
  readonly bytesOut: Cell
  readonly bytesIn: Cell
  readonly seconds: Cell
}

export class AttemptCounters {
  readonly #kinds: { readonly [kind in AttemptKind]: KindCells }
  /** By attempt number, from 1. */
  readonly #numbers: readonly CellsOf<Result>[]
  readonly #duration: Histogram<string>
  /** With its labels bound, for attempts without an exemplar. */
  readonly #durations: { readonly [result in Result]: { observe(seconds: number): void } }

  constructor(registry: Registry) {
    this.#kinds = kindsOf(registry)
    const byNumber = countedBy(
      registry,
      "posthorn_attempts_by_number_total",
      "Attempts by their number within the delivery",
      { number: NUMBERS, result: RESULTS },
    )
    this.#numbers = NUMBERS.map((number) => cellsBy(RESULTS, (result) => byNumber({ number, result })))
    this.#duration = new Histogram({
      name: "posthorn_attempt_duration_seconds",
      help: "Time from the start of an attempt to its end: name resolution, connection, request and response",
      labelNames: ["result"],
      buckets: DURATION_BUCKETS,
      registers: [registry],
      enableExemplars: true,
    })
    for (const result of RESULTS) this.#duration.zero({ result })
    this.#durations = {
      succeeded: this.#duration.labels({ result: "succeeded" }),
      failed: this.#duration.labels({ result: "failed" }),
    }
  }

  add(
    { status, responseStatus, responseBody, attemptNumber, durationMs }: Attempt,
    kind: AttemptKind,
    bytesOut: number,
    traceId: string | null,
  ): void {
    const result = status === "succeeded" ? "succeeded" : "failed"
    const seconds = durationMs / 1000
    const cells = this.#kinds[kind]
    cells.attempts[result][classOf(responseStatus)].value++
    cells.bytesOut.value += bytesOut
    cells.bytesIn.value += responseBody?.length ?? 0
    cells.seconds.value += seconds
    this.#numbers[Math.min(attemptNumber, NUMBERS.length) - 1]![result].value++
    if (traceId === null) return this.#durations[result].observe(seconds)
    this.#duration.observe({ labels: { result }, value: seconds, exemplarLabels: { trace_id: traceId } })
  }
}

function kindsOf(registry: Registry): { readonly [kind in AttemptKind]: KindCells } {
  const attempts = countedBy(
    registry,
    "posthorn_attempts_total",
    "Finished attempts. Attempts of unknown outcome are left out",
    { result: RESULTS, status_class: STATUS_CLASSES, kind: ATTEMPT_KINDS },
  )
  const bytes = countedBy(
    registry,
    "posthorn_attempt_bytes_total",
    "Bytes of payloads sent (out) and of response bodies read, each up to 64 KiB (in)",
    { direction: ["out", "in"], kind: ATTEMPT_KINDS },
  )
  const seconds = countedBy(registry, "posthorn_attempt_seconds_total", "Sum of the durations of attempts", {
    kind: ATTEMPT_KINDS,
  })
  const cellsOf = (kind: AttemptKind): KindCells => {
    const byClass = (result: Result) =>
      cellsBy(STATUS_CLASSES, (status_class) => attempts({ result, status_class, kind }))
    return {
      attempts: { succeeded: byClass("succeeded"), failed: byClass("failed") },
      bytesOut: bytes({ direction: "out", kind }),
      bytesIn: bytes({ direction: "in", kind }),
      seconds: seconds({ kind }),
    }
  }
  return {
    first: cellsOf("first"),
    retry: cellsOf("retry"),
    manual: cellsOf("manual"),
    probe: cellsOf("probe"),
  }
}

function classOf(status: number | null): StatusClass {
  return status === null ? "none" : (CLASS_OF[Math.floor(status / 100)] ?? "none")
}
