/** Readers of the live stream that get the same bytes. */
import type { BufferedEvent } from "./event-buffer.ts"
import type { LiveFilter } from "./live-filter.ts"
import type { LiveReader } from "./live-reader.ts"

export interface LiveGroup {
  readonly filter: LiveFilter
  readonly readers: ReadonlySet<LiveReader>
  /** Sends the reader everything that matches after its cursor and is still in the buffer. */
  join(reader: LiveReader): void
  leave(reader: LiveReader): void
  /** An event that matches. */
  add(event: BufferedEvent): void
  /** The reader's connection takes bytes again. */
  drained(reader: LiveReader): void
  /** Sends what can be sent. Returns the readers that needed an event which the buffer has lost. */
  flush(): LiveReader[]
}
