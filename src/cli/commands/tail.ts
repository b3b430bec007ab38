/** `posthorn tail`: follows the live events, and connects again where it left off. */
import { setTimeout as sleep } from "node:timers/promises"
import { Backoff } from "../../core/backoff.ts"
import { LIVE_KINDS } from "../../observe/live/live-filter.ts"
import { type Api, ApiFailure } from "../api.ts"
import { action, type Command } from "../command.ts"
import { eventLine } from "../event-line.ts"
import { texts } from "../flag.ts"
import type { Output } from "../output.ts"
import { serverSentEvents } from "../server-sent-events.ts"
import { whenStopped } from "../signals.ts"

/** Three heartbeats: a connection that is silent for longer is dead. */
const SILENT_MS = 45_000

export const command: Command = action({
  summary: "attempts, deliveries, dead letters and changes of endpoints, one line each, while they happen",
  about:
    "It goes on until Ctrl-C. A connection that is lost is made again, and the events in between follow;\nwhere some are missing, a line says so. With --json each line is the API's JSON. On SQLite, ask the\nserver that delivers (--server URL).",
  flags: {
    app: texts("APP", "of this application, by id or uid; several are any of them", { field: "app_id" }),
    endpoint: texts("ENDPOINT", "of this endpoint, by id; by uid together with one --app", {
      field: "endpoint_id",
    }),
    kind: {
      ...texts("KIND", "of this kind, such as delivery.dead; several are any of them", { field: "kind" }),
      choices: LIVE_KINDS,
    },
  },
  examples: [
    "posthorn tail",
    "posthorn tail --app acme --kind delivery.attempt --kind delivery.dead",
    "posthorn tail --app acme --endpoint main --json",
  ],
  async run({ api, out, fields }) {
    const stop = new AbortController()
    void whenStopped().then(() => stop.abort())
    const tail = new Tail(api, out, fields, stop.signal)
    await tail.run()
    return 0
  },
})

class Tail {
  readonly #api: Api
  readonly #out: Output
  readonly #query: { readonly [field: string]: unknown }
  readonly #stopped: AbortSignal
  readonly #backoff = new Backoff({ firstMs: 200, longestMs: 10_000, random: Math.random })
  #lastEventId: string | null = null
  #isLost = false

  constructor(api: Api, out: Output, query: { readonly [field: string]: unknown }, stopped: AbortSignal) {
    this.#api = api
    this.#out = out
    this.#query = query
    this.#stopped = stopped
  }

  /** Rejects when the first connection fails, and when the server refuses a later one. */
  async run(): Promise<void> {
    while (!this.#stopped.aborted) {
      try {
        await this.#follow()
        this.#lost("the server ended the stream")
      } catch (error) {
        if (this.#stopped.aborted) return
        if (this.#lastEventId === null || isRefusal(error)) throw hinted(error)
        this.#lost((error as Error).message)
      }
      await sleep(this.#backoff.nextMs(), undefined, { signal: this.#stopped }).catch(() => {})
    }
  }

  async #follow(): Promise<void> {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), SILENT_MS)
    try {
      const signal = AbortSignal.any([this.#stopped, silence.signal])
      const headers = this.#lastEventId === null ? {} : { "last-event-id": this.#lastEventId }
      const chunks = await this.#api.stream("/events", { query: this.#query, headers }, signal)
      for await (const { id, event } of serverSentEvents(chunks)) {
        timer.refresh()
        this.#connected()
        this.#lastEventId = id
        if (event === null) continue
        const data = JSON.parse(event.data)
        this.#out.line({ id, ...data }, eventLine(data))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  #connected(): void {
    this.#backoff.reset()
    if (this.#isLost) this.#out.note("Connected again; the events since then follow.")
    else if (this.#lastEventId === null) this.#out.note("Waiting for events; Ctrl-C ends it.")
    this.#isLost = false
  }

  #lost(why: string): void {
    if (this.#stopped.aborted || this.#isLost) return
    this.#isLost = true
    this.#out.note(`The connection was lost (${why}); connecting again.`)
  }
}

/** A stopping or overloaded server is asked again. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiFailure && error.status < 500 && error.status !== 429
}

function hinted(error: unknown): unknown {
  if (!(error instanceof ApiFailure) || error.status !== 409) return error
  return new ApiFailure(error.status, `${error.message}, with --server URL`)
}
