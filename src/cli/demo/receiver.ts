/** The receivers of the demo: verify, take each event once, and fail as `endpoints.ts` says. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { PosthornError, verifySignature } from "../../index.ts"
import { type DemoEndpoint, ENDPOINTS, type ReceiverResponse } from "./endpoints.ts"

/** The own counts of an endpoint's receiver. */
export interface Tally {
  readonly secret: string
  /** Message id → number of the event, in the order of receipt. */
  readonly taken: Map<string, number>
  /** Number of the event → requests. */
  readonly seen: Map<number, number>
  requests: number
  /** Requests for an event that was already taken, recognised by its id. */
  repeats: number
  forged: number
}

/** The egress guard refuses loopback addresses by default. */
export const LOOPBACK = { allow: ["127.0.0.0/8"] } as const

export class DemoReceiver {
  readonly #server: Server
  readonly #tallies = new Map<string, Tally>()
  #mended = false

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => this.#receive(request, Buffer.concat(chunks), response))
    })
  }

  static async start(): Promise<DemoReceiver> {
    const receiver = new DemoReceiver()
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve))
    return receiver
  }

  url(uid: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${uid}`
  }

  /** Requests of this endpoint must be signed with the secret. */
  expect(uid: string, secret: string): void {
    const tally = { secret, taken: new Map(), seen: new Map(), requests: 0, repeats: 0, forged: 0 }
    this.#tallies.set(uid, tally)
  }

  mend(): void {
    this.#mended = true
  }

  tally(uid: string): Tally {
    return this.#tallies.get(uid)!
  }

  /** Sums a count over all endpoints. */
  total(count: (tally: Tally) => number): number {
    return [...this.#tallies.values()].reduce((sum, tally) => sum + count(tally), 0)
  }

  #receive(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
    const part = ENDPOINTS.find(({ uid }) => request.url === `/${uid}`)
    const tally = part && this.#tallies.get(part.uid)
    if (part === undefined || tally === undefined) return void response.writeHead(404).end()
    tally.requests++
    const answer = this.#judge(part, tally, request, body)
    if (answer === "hang") return
    if (answer === "drop") return void request.socket.destroy()
    const { status, body: text, retryAfterSeconds } = answer
    if (retryAfterSeconds !== undefined) response.setHeader("retry-after", retryAfterSeconds)
    response.writeHead(status).end(text)
  }

  #judge(part: DemoEndpoint, tally: Tally, request: IncomingMessage, body: Buffer): ReceiverResponse {
    try {
      verifySignature(tally.secret, request.headers, body)
    } catch (error) {
      if (!(error instanceof PosthornError)) throw error
      tally.forged++
      return { status: 401, body: error.message }
    }
    const id = String(request.headers["webhook-id"])
    const { n } = JSON.parse(body.toString()) as { n: number }
    const tries = (tally.seen.get(n) ?? 0) + 1
    tally.seen.set(n, tries)
    const answer = part.answer({ n, tries, requests: tally.requests, mended: this.#mended })
    const takes = answer === "hang" || (answer !== "drop" && answer.status < 300)
    if (takes && tally.taken.has(id)) tally.repeats++
    else if (takes) tally.taken.set(id, n)
    return answer
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
