/** What `posthorn listen` shows: the contract of the live table and of plain lines, and the sentences of both. */
import type { AgentEvent } from "../../agent/event.ts"
import type { AgentDisconnected, AgentHandled } from "../../agent/options.ts"
import { isLoopback } from "../../agent/server-url.ts"
import { countText } from "../../core/wording.ts"

export interface Listening {
  /** The public URL of the source. */
  readonly url: string
  readonly forward: URL
  readonly appId: string
  readonly sourceId: string
  readonly endpointId: string
  /** The other endpoints that get the webhooks, too. */
  readonly others: number
}

export interface Display {
  arrived(event: AgentEvent): void
  answered(handled: AgentHandled): void
  connected(): void
  disconnected(disconnected: AgentDisconnected): void
  note(sentence: string): void
  /** Restores the terminal; idempotent. */
  leave(): void
}

/** Below the URL. */
export function headingNotes({ url, forward, others }: Listening): string[] {
  const sentences = [`Webhooks to this URL, and to paths below it, go to ${forward.href.replace(/\/$/, "")}.`]
  if (isLoopback(new URL(url)))
    sentences.push("Only this machine reaches it: a provider needs a server with a public address.")
  if (others > 0) sentences.push(`It also goes to ${countText(others, "other endpoint")} of the application.`)
  return sentences
}
