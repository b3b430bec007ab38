/** The receiver's side of the kill tests: it answers well, badly, late or never, and knows what it answered to whom. */
import type { ServerResponse } from "node:http"
import { type Received, Receiver } from "../support/receiver.ts"

export const PLAIN = ["plain-1", "plain-2"]
export const ORDERED = ["ordered-1", "ordered-2"]

export interface Entry {
  readonly endpoint: string
  readonly id: string
  readonly body: Buffer
  /** The status it was answered with; 0 when it never was. */
  readonly status: number
}

export class Ledger {
  /** In order of arrival. An answer's body is the number of its entry, by which an attempt names the request it was. */
  readonly entries: Entry[] = []
  readonly #receiver: Receiver
  readonly #random: () => number

  private constructor(receiver: Receiver, random: () => number) {
    this.#receiver = receiver
    this.#random = random
    for (const endpoint of [...PLAIN, ...ORDERED])
      receiver.always(`/${endpoint}`, (request, response) => this.#answer(endpoint, request, response))
  }

  static async start(random: () => number): Promise<Ledger> {
    return new Ledger(await Receiver.start(), random)
  }

  get url(): string {
    return this.#receiver.url("/")
  }

  close(): Promise<void> {
    return this.#receiver.close()
  }

  #answer(endpoint: string, { id, body }: Received, response: ServerResponse): void {
    const roll = this.#random()
    const status = isHopeless(endpoint, body) || roll < 0.06 ? 500 : roll < 0.065 ? 0 : 200
    const number = this.entries.push({ endpoint, id, body, status }) - 1
    const answer = () => {
      response.statusCode = status
      response.end(String(number))
    }
    if (status === 0) return
    if (roll > 0.98) setTimeout(answer, 10 + this.#random() * 200)
    else answer()
  }
}

/** Some are never taken, on a plain and on an ordered endpoint, so that there are dead letters. */
function isHopeless(endpoint: string, body: Buffer): boolean {
  const { n } = JSON.parse(body.toString())
  return (endpoint === PLAIN[0] && n % 29 === 7) || (endpoint === ORDERED[0] && n % 44 === 12)
}
