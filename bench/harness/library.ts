/** Posthorn as a library: opens it, creates endpoints, sends, and waits until all deliveries are settled. */
import { mkdtempSync, rmSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EndpointInput, Posthorn, PosthornOptions, SendResult } from "../../src/index.ts"
import { openPosthorn, type Replacements } from "../../src/posthorn.ts"
import { payloadOf } from "./payload.ts"
import type { Receiver } from "./receiver.ts"
import { type Round, timed } from "./rounds.ts"
import { sendAll } from "./senders.ts"
import { CONNECTIONS, EGRESS } from "./settings.ts"
import { inTime } from "./void.ts"

const TMPFS = 0x01021994

/** Why commits in temporary folders are not really synced, or null. */
export function problemOfTemporaryFolders(): string | null {
  if (statfsSync(tmpdir()).type !== TMPFS) return null
  return `${tmpdir()} is in memory, where a commit waits for no disk; set TMPDIR to a folder on a disk`
}

/** A new folder for the files of a run. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "posthorn-bench-"))
}

/** Fields of an endpoint beside the URL. */
export type EndpointPlan = (index: number) => Partial<EndpointInput>

export class Library {
  readonly posthorn: Posthorn
  readonly #receiver: Receiver
  readonly #folder: string

  private constructor(posthorn: Posthorn, receiver: Receiver, folder: string) {
    this.posthorn = posthorn
    this.#receiver = receiver
    this.#folder = folder
  }

  /** By default on a new SQLite file. */
  static async open(
    receiver: Receiver,
    options: Partial<PosthornOptions> = {},
    replacements: Replacements = {},
  ): Promise<Library> {
    const folder = temporaryFolder()
    const defaults = {
      store: `sqlite:${join(folder, "bench.db")}`,
      concurrency: CONNECTIONS,
      closeTimeoutMs: 0,
    }
    const settings = { ...defaults, logger: "error", egress: EGRESS, ...options } as const
    return new Library(await openPosthorn(settings, replacements), receiver, folder)
  }

  /** Creates an application whose endpoints each have an event type of their own, or uses an existing one. */
  async traffic(uid: string, endpoints: number, input: EndpointPlan = () => ({})): Promise<Traffic> {
    const { applications, endpoints: all } = this.posthorn
    const exists = await applications.get(uid).then(
      () => true,
      () => false,
    )
    if (!exists) {
      await applications.create({ uid, name: uid })
      const url = `${this.#receiver.origin}/ok`
      const make = (i: number) => all.create(uid, { url, eventTypes: [eventType(i)], ...input(i) })
      await Promise.all(Array.from({ length: endpoints }, (_, i) => make(i)))
    }
    return new Traffic(this.posthorn, this.#receiver, uid, endpoints)
  }

  async close(): Promise<void> {
    await this.posthorn.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Of fixed length, so that it can be replaced in a prepared request. */
export function eventType(endpoint: number): string {
  return `type-${String(endpoint).padStart(2, "0")}`
}

export class Traffic {
  readonly #posthorn: Posthorn
  readonly #receiver: Receiver
  readonly #app: string
  readonly #endpoints: number

  constructor(posthorn: Posthorn, receiver: Receiver, app: string, endpoints: number) {
    this.#posthorn = posthorn
    this.#receiver = receiver
    this.#app = app
    this.#endpoints = endpoints
  }

  /** Round robin over the endpoints, by default by the message's number. */
  send(ordinal: number, turn = ordinal): Promise<SendResult> {
    return this.#posthorn.send(this.#app, this.message(ordinal, turn))
  }

  message(ordinal: number, turn = ordinal) {
    return { eventType: eventType(turn % this.#endpoints), payload: payloadOf(ordinal) }
  }

  /** From the first send until the last delivery is settled, with `batch` messages in each call. */
  async run(count: number, batch = 1): Promise<Round> {
    const expected = await this.#receiver.expect(count)
    const settled = this.#settled(count)
    const call = (ordinals: readonly number[]) =>
      ordinals.length === 1 ? this.send(ordinals[0]!) : this.#sendBatch(ordinals)
    return timed(count, async () => {
      await sendAll(expected.from, count, batch, call)
      await expected.complete()
      await inTime(settled, () => "messages that came were not settled")
    })
  }

  #sendBatch(ordinals: readonly number[]): Promise<SendResult[]> {
    return this.#posthorn.sendBatch(
      this.#app,
      ordinals.map((ordinal) => this.message(ordinal)),
    )
  }

  #settled(count: number): Promise<void> {
    return new Promise((resolve) => {
      let settled = 0
      const stop = this.#posthorn.on("delivery.delivered", () => {
        if (++settled < count) return
        stop()
        resolve()
      })
    })
  }
}
