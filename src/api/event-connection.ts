/** The connection of a reader of live events: a response that is written until the reader leaves or is dropped. */
import type { FastifyReply, FastifyRequest } from "fastify"
import type { LiveEvents } from "../observe/live/live-events.ts"
import type { LiveFilter } from "../observe/live/live-filter.ts"
import type { Context } from "./context.ts"

/** Proxies must neither keep the stream nor wait for its end. */
export const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
}

/** Throws before anything is written when the reader cannot be taken. */
export function streamEvents(
  liveEvents: LiveEvents,
  { requestLog, isStillValid }: Context,
  { filter, lastEventId }: { readonly filter: LiveFilter; readonly lastEventId: string | null },
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { raw } = reply
  // The reader left while its filter was looked up; its close event has passed.
  if (raw.destroyed) return void reply.hijack()
  const begin = () => {
    reply.hijack()
    raw.writeHead(200, { ...(reply.getHeaders() as { [name: string]: string }), ...STREAM_HEADERS })
    requestLog.streamBegan(request, reply)
    // Readers are limited by themselves: a thousand of them must not take the places of other requests.
    request.slot?.leave()
  }
  const reader = liveEvents.open(filter, lastEventId, {
    write(bytes) {
      if (!raw.headersSent) begin()
      return raw.write(bytes)
    },
    mayGoOn: () =>
      isStillValid(request).catch((error) => {
        // The key was good a moment ago, and nobody can be asked.
        request.log.warn({ err: error }, "The key of a reader of live events could not be checked")
        return true
      }),
    end: (how) => (how === "drop" ? raw.destroy() : raw.end()),
  })
  raw.on("drain", () => liveEvents.drained(reader))
  raw.on("close", () => liveEvents.leave(reader))
}
