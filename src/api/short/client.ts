/** One connection on the short way, with one request under way at most. */
import type { Socket } from "node:net"
import { EndOfTurn } from "../../turn.ts"
import { type Answer, textOf } from "./answer.ts"
import type { Clerk } from "./clerk.ts"
import { type Head, readHead } from "./head.ts"

export interface Patience {
  /** For a connection's first bytes, and for the second piece of a request. */
  readonly headersMs: number
  /** Between two requests. */
  readonly keepAliveMs: number
}

interface Owner {
  /** The HTTP server is to have the connection. */
  takeOver(): void
  /** It is no longer on the short way. */
  left(): void
}

/** No longer head is looked at. */
const MOST_HEAD_BYTES = 8192

/** Answers of one moment are written one after the other: a client that reads one of them is awake for the next. */
const ANSWERED = new EndOfTurn<Client>((client) => client.write())

export class Client {
  readonly #socket: Socket
  readonly #clerk: Clerk
  readonly #patience: Patience
  readonly #owner: Owner
  /** The first piece of a request. */
  #begun: Buffer | null = null
  #isBusy = false
  #answer: Answer | null = null
  /** What came while a request was under way. */
  #early: Buffer | null = null
  /** No request comes after this one. */
  #isLast = false
  /** Between two requests, for which it has longer than for the second piece of one. */
  #isResting = false
  readonly #listeners: { readonly [event: string]: (chunk: Buffer) => void } = {
    data: (chunk) => this.#take(chunk),
    end: () => this.#ended(),
    timeout: () => this.#timedOut(),
    close: () => this.#owner.left(),
    // A close follows.
    error: () => {},
  }

  constructor(socket: Socket, clerk: Clerk, patience: Patience, owner: Owner) {
    this.#socket = socket
    this.#clerk = clerk
    this.#patience = patience
    this.#owner = owner
    for (const [event, listener] of Object.entries(this.#listeners)) socket.on(event, listener)
    socket.setTimeout(patience.headersMs)
  }

  #take(chunk: Buffer): void {
    if (this.#isBusy) {
      this.#early = chunk
      this.#socket.pause()
      return
    }
    const begun = this.#begun
    this.#begun = null
    const bytes = begun === null ? chunk : Buffer.concat([begun, chunk])
    const head = readHead(bytes.toString("latin1", 0, MOST_HEAD_BYTES))
    // Who does not read the answers is for the HTTP server, which then stops reading too.
    if (head === null || bytes.length > head.bodyTo || this.#socket.writableLength > 0)
      return this.#handOver(bytes)
    if (bytes.length === head.bodyTo) return void this.#serve(head, bytes)
    if (begun !== null) return this.#handOver(bytes)
    this.#begun = bytes
    this.#rests(false)
  }

  #rests(rests: boolean): void {
    if (this.#isResting === rests) return
    this.#isResting = rests
    this.#socket.setTimeout(rests ? this.#patience.keepAliveMs : this.#patience.headersMs)
  }

  async #serve(head: Head, bytes: Buffer): Promise<void> {
    this.#isBusy = true
    let admitted = this.#clerk.admit(head, bytes)
    if (admitted instanceof Promise) {
      // What comes meanwhile, be it the end, is for whoever has the connection then.
      this.#socket.pause()
      admitted = await admitted
      this.#socket.resume()
    }
    if (admitted === null) return this.#handOver(bytes)
    this.#answer = await this.#clerk.answer(admitted)
    ANSWERED.add(this)
  }

  /** The answer. */
  write(): void {
    const text = textOf(this.#answer!, this.#isLast ? null : this.#patience.keepAliveMs)
    this.#answer = null
    this.#isBusy = false
    this.#socket.write(text)
    if (this.#isLast) return this.#socket.destroySoon()
    this.#rests(true)
    if (this.#early !== null) this.#handOver(this.#early)
  }

  #handOver(bytes: Buffer | null): void {
    const socket = this.#socket
    if (socket.destroyed) return
    for (const [event, listener] of Object.entries(this.#listeners)) socket.off(event, listener)
    socket.setTimeout(0)
    socket.pause()
    this.#owner.left()
    this.#owner.takeOver()
    if (bytes !== null) socket.unshift(bytes)
    socket.resume()
  }

  #ended(): void {
    this.#isLast = true
    if (!this.#isBusy) this.#socket.end()
  }

  #timedOut(): void {
    if (this.#isBusy) return
    if (this.#isResting) this.#socket.destroy()
    else this.#handOver(this.#begun)
  }

  /** Sent away when it waits for nothing. */
  stop(): void {
    this.#isLast = true
    if (this.#isBusy) return
    if (this.#begun === null) this.#socket.destroy()
    else this.#handOver(this.#begun)
  }

  cut(): void {
    this.#socket.destroy()
  }
}
