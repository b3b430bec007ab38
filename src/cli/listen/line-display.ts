/** A line for each answer of the local program; with `--print`, the request before it. */
import { isUtf8 } from "node:buffer"
import type { AgentEvent } from "../../agent/event.ts"
import type { AgentDisconnected, AgentHandled } from "../../agent/options.ts"
import { disconnectedText, handledLine, handledRecord, inText } from "../agent-line.ts"
import type { Output } from "../output.ts"
import { type Display, headingNotes, type Listening } from "./display.ts"
import { requestLines } from "./request-text.ts"

export class LineDisplay implements Display {
  readonly #out: Output
  readonly #prints: boolean
  #hasConnected = false
  #told: string | undefined

  constructor(out: Output, listening: Listening, prints: boolean) {
    this.#out = out
    this.#prints = prints
    const { url, forward, appId, sourceId, endpointId } = listening
    const ids = { app_id: appId, source_id: sourceId, endpoint_id: endpointId }
    out.line({ url, forward: forward.href, ...ids }, [[url, "title"]])
    for (const sentence of headingNotes(listening)) out.note(sentence)
  }

  /** A request that is tried again is not printed again. */
  arrived(event: AgentEvent): void {
    if (this.#prints && !this.#out.json && event.attempt === 1)
      this.#out.lines(["", ...requestLines(event), ""])
  }

  answered(handled: AgentHandled): void {
    const at = new Date()
    const request = this.#prints ? requestRecord(handled.event) : {}
    this.#out.line({ ...handledRecord(handled, at), ...request }, handledLine(handled, at))
  }

  connected(): void {
    this.#out.note(this.#hasConnected ? "Connected again." : "Connected; Ctrl-C ends it.")
    this.#hasConnected = true
    this.#told = undefined
  }

  disconnected(disconnected: AgentDisconnected): void {
    if (disconnected.retryInMs === null) return
    this.#out.note(disconnectedText(disconnected, inText(disconnected), this.#told))
    this.#told = disconnected.reason
  }

  note(sentence: string): void {
    this.#out.note(sentence)
  }

  leave(): void {}
}

function requestRecord({ query, headers, body }: AgentEvent): object {
  const bytes = Buffer.from(body)
  return { query, headers, ...(isUtf8(bytes) ? { body: `${bytes}` } : { base64: bytes.toString("base64") }) }
}
