/** Reads the live stream by `fetch`, which can send headers, and connects again when it breaks. */

import { sentenceOf } from "./problem.ts"

export interface StreamEvent {
  readonly kind: string
  readonly id: string | null
  // biome-ignore lint/suspicious/noExplicitAny: the fields depend on the kind
  readonly data: any
}

/** `refused`: the session has ended, or the server does not have the stream; the text says which. */
export type StreamState =
  | { readonly kind: "connecting" | "live" | "interrupted" }
  | { readonly kind: "refused"; readonly status: number; readonly text: string }

export interface StreamOptions {
  readonly path: string
  readonly headers: { readonly [name: string]: string }
  onEvent(event: StreamEvent): void
  onState(state: StreamState): void
}

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000
/** The server sends a comment every 15 seconds. */
const SILENCE_MS = 40_000

/** Returns a function that ends the stream. */
export function openStream(options: StreamOptions): () => void {
  let isEnded = false
  let aborter = new AbortController()
  let lastId: string | null = null
  let pauseMs = FIRST_PAUSE_MS
  const run = async () => {
    options.onState({ kind: "connecting" })
    while (!isEnded) {
      aborter = new AbortController()
      try {
        const response = await fetch(options.path, {
          headers: { ...options.headers, ...(lastId === null ? {} : { "last-event-id": lastId }) },
          signal: aborter.signal,
        })
        if (response.status >= 400 && response.status < 500) {
          const body = await response.json().catch(() => null)
          const text = sentenceOf(body) ?? `the server answered with ${response.status}`
          return options.onState({ kind: "refused", status: response.status, text })
        }
        if (response.ok && response.body !== null) {
          options.onState({ kind: "live" })
          pauseMs = FIRST_PAUSE_MS
          await readAll(response.body, aborter, (event) => {
            lastId = event.id ?? lastId
            options.onEvent(event)
          })
        }
      } catch {
        // The connection broke, or was never made.
      }
      if (isEnded) return
      options.onState({ kind: "interrupted" })
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random())))
      pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)
    }
  }
  void run()
  return () => {
    isEnded = true
    aborter.abort()
  }
}

async function readAll(
  body: ReadableStream<Uint8Array>,
  aborter: AbortController,
  onEvent: (event: StreamEvent) => void,
): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader()
  let rest = ""
  for (;;) {
    const timer = setTimeout(() => aborter.abort(), SILENCE_MS)
    const { value, done } = await reader.read().finally(() => clearTimeout(timer))
    if (done) return
    const blocks = (rest + value).split("\n\n")
    rest = blocks.pop()!
    for (const block of blocks) {
      const event = parse(block)
      if (event !== null) onEvent(event)
    }
  }
}

function parse(block: string): StreamEvent | null {
  let [kind, id] = ["message", null as string | null]
  const data: string[] = []
  for (const line of block.split("\n")) {
    const at = line.indexOf(":")
    const [field, value] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1).replace(/^ /, "")]
    if (field === "event") kind = value
    else if (field === "id") id = value
    else if (field === "data") data.push(value)
  }
  return data.length === 0 ? null : { kind, id, data: JSON.parse(data.join("\n")) }
}
