/** One connection on the short way, with one request under way at most. */
import type { Socket } from "node:net"
import { EndOfTurn } from "../../turn.ts"
import { type Answer, textOf } from "./answer.ts"
import type { Clerk } from "./clerk.ts"
import { type Head, readHead } from "./head.ts"

export interface Limits {
  /** For a connection's first bytes, and for the second piece of a request. */
  readonly headersMs: number
  /** Between two requests, as clients are told. */
  readonly keepAliveMs: number
  readonly bodyLimit: number
}

interface Owner {
  /** The HTTP server is to have the connection. */
  takeOver(): void
  /** It is no longer on the short way. */
  left(): void
}

/** As with Node's HTTP server: who uses a connection at the last moment is not to meet its end. */
const KEEP_ALIVE_MARGIN_MS = 1000

/** A longer request is cut between its head and its body, or not at all: no more is kept for somebody who is not known yet. */
const MOST_CUT_BYTES = 16_384

/** Answers of one moment are written one after the other: a client that reads one of them is awake for the next. */
const ANSWERED = new EndOfTurn<Client>((client) => client.write())

export class Client {
  readonly #socket: Socket
  readonly #clerk: Clerk
  readonly #limits: Limits
  readonly #owner: Owner
  /** The first piece of a request: many clients write the head by itself. */
  #begun: Buffer | null = null
  #isBusy = false
  #answer: Answer | null = null
  /** More came while a request was under way. */
  #hasMore = false
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

  constructor(socket: Socket, clerk: Clerk, limits: Limits, owner: Owner) {
    this.#socket = socket
    this.#clerk = clerk
    this.#limits = limits
    this.#owner = owner
    for (const [event, listener] of Object.entries(this.#listeners)) socket.on(event, listener)
    socket.setTimeout(limits.headersMs)
  }

  #take(chunk: Buffer): void {
    if (this.#isBusy) return this.#keepForLater(chunk)
    // It was sent away: nobody would hear the answer.
    if (this.#isLast) return
    const begun = this.#begun
    this.#begun = null
    const bytes = begun === null ? chunk : Buffer.concat([begun, chunk])
    const head = readHead(bytes)
    if (head === null || !this.#isMine(head) || bytes.length > head.bodyTo) return this.#handOver(bytes)
    if (bytes.length === head.bodyTo) return void this.#serve(head, bytes)
    const isHead = bytes.length === head.bodyFrom
    if (begun !== null || !(isHead || head.bodyTo <= MOST_CUT_BYTES)) return this.#handOver(bytes)
    this.#begun = bytes
    this.#rest(false)
  }

  /** Who does not read the answers is for the HTTP server, which then stops reading too. */
  #isMine({ bodyFrom, bodyTo }: Head): boolean {
    return bodyTo - bodyFrom <= this.#limits.bodyLimit && this.#socket.writableLength === 0
  }

  /** In the socket, where an end that follows waits behind it. */
  #keepForLater(chunk: Buffer): void {
    this.#hasMore = true
    this.#socket.pause()
    this.#socket.unshift(chunk)
  }

  async #serve(head: Head, bytes: Buffer): Promise<void> {
    this.#isBusy = true
    this.#answer = await this.#clerk.answer(head, bytes.subarray(head.bodyFrom, head.bodyTo))
    ANSWERED.add(this)
  }

  /** The answer. */
  write(): void {
    const text = textOf(this.#answer!, this.#isLast ? null : this.#limits.keepAliveMs)
    this.#answer = null
    this.#isBusy = false
    this.#socket.write(text)
    if (this.#isLast) return this.#socket.destroySoon()
    this.#rest(true)
    if (this.#hasMore) this.#handOver(null)
  }

  #rest(rests: boolean): void {
    if (this.#isResting === rests) return
    this.#isResting = rests
    const { keepAliveMs, headersMs } = this.#limits
    this.#socket.setTimeout(rests ? keepAliveMs + KEEP_ALIVE_MARGIN_MS : headersMs)
  }

  /** With what was read of the next request. Never with one that is worked on: nothing is done twice. */
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
    if (this.#begun === null) this.#socket.destroySoon()
    else this.#handOver(this.#begun)
  }

  cut(): void {
    this.#socket.destroy()
  }
}
