/** Turns the answer of a handler, or its error, into the outcome that the agent acknowledges. */
import { describe } from "../core/errors.ts"
import type { AckResult } from "../core/relay-protocol.ts"
import { type EncodedResponse, encodeResponse } from "./encoding.ts"
import type { AgentAnswer, AgentEvent, AgentHandler } from "./event.ts"

export interface AgentOutcome {
  readonly result: AckResult
  /** The HTTP status of the local program; null: it gave none. */
  readonly status: number | null
  /** Why it failed, for people. */
  readonly error: string | null
  readonly retryAfterSeconds: number | null
  /** The beginning of the response. */
  readonly response: EncodedResponse | null
}

const RESULTS: readonly unknown[] = ["success", "permanent", "transient"]
const TRANSIENT_4XX = new Set([408, 425, 429])
const MOST_ERROR = 1000
/** The server refuses more. */
const MOST_RETRY_AFTER_SECONDS = 86_400

/** Never rejects. */
export async function outcomeOf(handler: AgentHandler, event: AgentEvent): Promise<AgentOutcome> {
  try {
    return readAnswer((await handler(event)) ?? "success")
  } catch (error) {
    return failed(describe(error))
  }
}

function readAnswer(answer: NonNullable<AgentAnswer>): AgentOutcome {
  if (RESULTS.includes(answer)) return bare(answer as AckResult)
  if (typeof answer !== "object") return failed(`the handler returned ${JSON.stringify(answer)}`)
  const { status = null, result = resultOf(status), error = null, retryAfterSeconds, body = "" } = answer
  if (status !== null && !(Number.isInteger(status) && status >= 100 && status <= 599))
    return failed(`the handler returned the status ${status}`)
  if (!RESULTS.includes(result)) return failed(`the handler returned the result ${result}`)
  const isLater = result === "transient" && Number.isFinite(retryAfterSeconds) && retryAfterSeconds! > 0
  return {
    result,
    status,
    error: error === null ? null : String(error).slice(0, MOST_ERROR),
    retryAfterSeconds: isLater ? Math.min(Math.ceil(retryAfterSeconds!), MOST_RETRY_AFTER_SECONDS) : null,
    response: encodeResponse(typeof body === "string" ? Buffer.from(body) : body),
  }
}

function resultOf(status: number | null): AckResult {
  if (status === null || (status >= 200 && status < 300)) return "success"
  return status >= 400 && status < 500 && !TRANSIENT_4XX.has(status) ? "permanent" : "transient"
}

function bare(result: AckResult, error: string | null = null): AgentOutcome {
  return { result, status: null, error, retryAfterSeconds: null, response: null }
}

function failed(error: string): AgentOutcome {
  return bare("transient", error.slice(0, MOST_ERROR))
}
