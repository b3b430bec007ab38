/** What `posthorn listen` makes on the server and deletes at its end, the last first. */
import { printable } from "../../core/text.ts"
import { type Api, ApiFailure } from "../api.ts"

export interface Temporary {
  /** The route that deletes it. */
  readonly route: string
  /** The command that does the same, without `posthorn`. */
  readonly command: string
}

/** For all of them together: the user waits. */
const PATIENCE_MS = 10_000

export class TemporaryThings {
  readonly #api: Api
  readonly #flags: string
  #things: readonly Temporary[] = []
  #problem: string | null = null

  /** `server`: as it was typed. */
  constructor(api: Api, server: string | undefined) {
    this.#api = api
    this.#flags = server === undefined ? "--yes" : `--yes --server ${server}`
  }

  add(thing: Temporary): void {
    this.#things = [thing, ...this.#things]
  }

  /** A request without a response may have made it, as may a request that a proxy or an overloaded server gave up. */
  async make<T>(thing: Temporary, request: () => Promise<T>): Promise<T> {
    this.add(thing)
    try {
      return await request()
    } catch (error) {
      if (error instanceof ApiFailure && error.status < 500) this.#remove(thing)
      throw error
    }
  }

  /** What is still there, as sentences for the user; null: nothing. */
  get left(): string | null {
    if (this.#things.length === 0) return null
    const why = this.#problem === null ? "" : ` (${this.#problem})`
    const commands = this.#things.map(({ command }) => `\n  posthorn ${printable(command)} ${this.#flags}`)
    return `not everything that this run made could be deleted${why}; this deletes the rest:${commands.join("")}`
  }

  /** Never rejects. */
  async deleteAll(): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    for (const thing of this.#things) if (await this.#delete(thing, signal)) this.#remove(thing)
  }

  async #delete({ route }: Temporary, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#api.send("DELETE", route, { signal })
      return true
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 404) return true
      this.#problem = printable((error as Error).message)
      return false
    }
  }

  #remove(thing: Temporary): void {
    this.#things = this.#things.filter((one) => one !== thing)
  }
}
