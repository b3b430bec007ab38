/** A reader of `GET /events` over a socket of its own, which a test can cut, or stop reading. */

import { get, type IncomingMessage } from "node:http"
import { onTestFinished } from "vitest"
import { Watchers } from "../../support/watchers.ts"

export interface LiveEvent {
  readonly id: string
  readonly kind: string
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it waits for
  readonly data: any
}

export interface ReaderOptions {
  readonly query?: string
  readonly key: string
  readonly lastEventId?: string | undefined
}

export class EventReader {
  readonly events: LiveEvent[] = []
  readonly response: IncomingMessage
  /** The id of the latest block, also of one without data. */
  lastEventId = ""
  heartbeats = 0
  text = ""
  readonly closed: Promise<void>
  #rest = ""
  readonly #watchers = new Watchers()

  private constructor(response: IncomingMessage) {
    this.response = response
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    response.setEncoding("utf8")
    response.on("data", (text: string) => this.#read(text))
    response.on("error", () => {})
    response.on("close", () => resolve())
  }

  /** Resolves with the response's head, whatever its status. */
  static async open(url: string, { query = "", key, lastEventId }: ReaderOptions): Promise<EventReader> {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    }
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const request = get(`${url}/api/v1/events${query}`, { headers, agent: false }, resolve)
    request.on("error", reject)
    onTestFinished(() => void request.destroy())
    const reader = new EventReader(await promise)
    if (reader.response.statusCode === 200) await reader.until(() => reader.lastEventId !== "")
    return reader
  }

  get kinds(): string[] {
    return this.events.map(({ kind }) => kind)
  }

  cut(): void {
    this.response.socket.destroy()
  }

  stopReading(): void {
    this.response.pause()
  }

  /** Checked after everything that arrives. */
  until(isDone: () => boolean): Promise<void> {
    return this.#watchers.until(isDone)
  }

  #read(text: string): void {
    this.text += text
    const blocks = (this.#rest + text).split("\n\n")
    this.#rest = blocks.pop()!
    for (const block of blocks) this.#take(block)
    this.#watchers.changed()
  }

  #take(block: string): void {
    if (block.startsWith(":")) this.heartbeats++
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1]
    this.lastEventId = field("id") ?? this.lastEventId
    const data = field("data")
    if (data === undefined) return
    this.events.push({ id: this.lastEventId, kind: field("event")!, data: JSON.parse(data) })
  }
}
