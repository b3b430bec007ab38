/** Events in the format of server-sent events (the HTML standard, section 9.2). */
import type { LiveEvent } from "./event-buffer.ts"
import type { SummaryEvent } from "./summary.ts"

/** JSON has no line breaks, so that one data line is enough. */
export function eventText(id: string, event: LiveEvent | SummaryEvent): string {
  return `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** How long a client waits before it connects again. */
const RETRY_MS = 2000

/** The first lines of a stream: from here on a reader can resume, even if no event comes before it loses its connection. */
export function openingText(id: string): string {
  return `retry: ${RETRY_MS}\nid: ${id}\n\n`
}

/** An id without data is no event: it only moves the place from which the reader resumes. */
export function heartbeatText(id: string): string {
  return `: heartbeat\nid: ${id}\n\n`
}
