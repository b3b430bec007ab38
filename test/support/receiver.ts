/** A real HTTP receiver on loopback that keeps a ledger of what arrived and answers as a test says. */

import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Watchers } from "./watchers.ts"

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Name, value, name, value …, with the case of the names. */
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
  /** `webhook-id`. */
  readonly id: string
  readonly at: number
}

export type Answer = number | ((request: Received, response: ServerResponse) => void)

export class Receiver {
  readonly requests: Received[] = []
  readonly #byPath = new Map<string, Received[]>()
  readonly #server: Server
  readonly #watchers = new Watchers()
  readonly #queued = new Map<string, Answer[]>()
  readonly #standing = new Map<string, Answer>()

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on("data", (chunk) => chunks.push(chunk))
      request.on("end", () => {
        const received: Received = {
          path: request.url ?? "/",
          headers: request.headers,
          rawHeaders: request.rawHeaders,
          body: Buffer.concat(chunks),
          id: String(request.headers["webhook-id"]),
          at: performance.now(),
        }
        this.requests.push(received)
        this.#at(received.path).push(received)
        this.#answer(received, response)
        this.#watchers.changed()
      })
    })
  }

  static async start(port = 0): Promise<Receiver> {
    const receiver = new Receiver()
    await new Promise<void>((resolve) => receiver.#server.listen(port, "127.0.0.1", resolve))
    return receiver
  }

  url(path = "/"): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`
  }

  /** The next requests to this path get these answers, one each; then the standing answer again. */
  queue(path: string, ...answers: Answer[]): void {
    this.#queued.set(path, [...(this.#queued.get(path) ?? []), ...answers])
  }

  /** Every request to this path gets this answer; 200 unless told. */
  always(path: string, answer: Answer): void {
    this.#standing.set(path, answer)
  }

  /** Keeps what comes to this path waiting. The function that comes back answers all of it, and from then on at once. */
  hold(path: string): (answer: number) => void {
    const waiting: ServerResponse[] = []
    this.always(path, (_request, response) => void waiting.push(response))
    return (answer) => {
      this.always(path, answer)
      for (const response of waiting.splice(0)) response.writeHead(answer).end()
    }
  }

  to(path: string): Received[] {
    return [...this.#at(path)]
  }

  #at(path: string): Received[] {
    const received = this.#byPath.get(path) ?? []
    this.#byPath.set(path, received)
    return received
  }

  /** Begins the ledger anew. */
  clear(): void {
    this.requests.length = 0
    this.#byPath.clear()
  }

  /** Resolves when at least so many requests have come to the path. */
  async arrived(path: string, count: number): Promise<Received[]> {
    await this.#watchers.until(() => this.#at(path).length >= count)
    return this.to(path)
  }

  #answer(received: Received, response: ServerResponse): void {
    const answer = this.#queued.get(received.path)?.shift() ?? this.#standing.get(received.path) ?? 200
    if (typeof answer === "function") return answer(received, response)
    response.statusCode = answer
    response.end(answer < 300 ? "ok" : `answer ${answer}`)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
