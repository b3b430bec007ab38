/** One reader of the live stream: how far it was sent, and whether it takes more now. */
import type { LiveGroup } from "./live-group.ts"

/** The reader's connection. */
export interface ReaderConnection {
  /** False: no more until `drained` is called. The bytes are taken in any case. */
  write(bytes: Buffer): boolean
  /** Called with each heartbeat: false, or an error, ends the stream, because the reader may not read any more. */
  mayGoOn(): Promise<boolean> | boolean
  /** `stop`: after the bytes in flight. `drop`: at once, since the reader does not read. */
  end(how: "stop" | "drop"): void
}

export class LiveReader {
  readonly connection: ReaderConnection
  readonly group: LiveGroup
  /** Every event up to this number was sent or does not match. */
  cursor: number
  #isBlocked = false
  #heartbeatsBlocked = 0

  constructor(connection: ReaderConnection, group: LiveGroup, cursor: number) {
    this.connection = connection
    this.group = group
    this.cursor = cursor
  }

  get isBlocked(): boolean {
    return this.#isBlocked
  }

  write(text: string | Buffer): void {
    this.#isBlocked = !this.connection.write(typeof text === "string" ? Buffer.from(text) : text)
  }

  drained(): void {
    this.#isBlocked = false
    this.#heartbeatsBlocked = 0
  }

  /** Whether it has read nothing since the heartbeat before. */
  missedHeartbeat(): boolean {
    return this.#isBlocked && ++this.#heartbeatsBlocked > 1
  }
}
