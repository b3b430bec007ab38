/**
 * Answers to requests that carry an idempotency key, kept for twelve hours.
 *
 * A record is begun before the request is worked on and holds the seed of the ids that it makes; the answer is added when there is
 * one. Whoever finds a record without an answer waits for it. When none comes within a few seconds its process has died: the request
 * is run again with the same seed, and so makes the same ids. Answers are sealed, since some of them hold a secret.
 */
import type { Clock } from "../core/clock.ts"
import { hasCode, PosthornError } from "../core/errors.ts"
import type { RandomBytes } from "../core/ids.ts"
import type { Vault } from "../core/vault.ts"
import type { Entry, Store } from "../store/store.ts"

export interface Answer {
  readonly status: number
  readonly body: string
}

/** What identifies a request. */
export interface Asked {
  readonly orgId: string
  /** Of the address and the idempotency key. */
  readonly name: string
  /** Of the body. */
  readonly digest: string
}

interface Kept {
  readonly digest: string
  readonly seed: string
  /** Nobody works on it any more, and whether it took effect is not known. */
  readonly broken: boolean
  readonly answer: { readonly status: number; readonly sealed: string } | null
}

/** The right to work on a request. */
export interface Run {
  readonly entry: Entry
  readonly seed: string
  readonly atMs: number
  /** Somebody had begun it and was not heard of again: what it did may be there. */
  readonly again: boolean
  /** For those who wait for it here. */
  readonly over: Promise<void>
  end(): void
}

export interface Parts {
  readonly store: Store
  readonly clock: Clock
  readonly vault: Vault
  readonly randomBytes: RandomBytes
}

const KIND = "answer"
const KEPT_MS = 12 * 3_600_000
const TAKEN_OVER_MS = 5000
const POLL_MS = 100

export class Answers {
  readonly #parts: Parts
  readonly #running = new Map<string, Run>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** An answer to give again, or the right to make one. Refused with `conflict` for another body. */
  async begin(asked: Asked): Promise<Answer | Run> {
    const { store, clock } = this.#parts
    for (;;) {
      await this.#running.get(asked.orgId + asked.name)?.over
      const now = clock.now()
      const entry = await store.getEntry(KIND, asked.orgId, asked.name, now)
      const record: Kept | null = entry === null ? null : JSON.parse(entry.body)
      if (record !== null && record.digest !== asked.digest)
        throw new PosthornError("conflict", "the idempotency key was used before with another body")
      if (record?.answer)
        return { status: record.answer.status, body: this.#open(record.answer.sealed, asked) }
      if (entry !== null && !record!.broken && now - entry.updatedAt < TAKEN_OVER_MS) {
        await new Promise<void>((resolve) => clock.setTimer(POLL_MS, resolve))
        continue
      }
      const run = await this.#take(asked, entry, record?.seed ?? this.#seed(), now)
      if (run !== null) return run
    }
  }

  async finish(run: Run, { orgId, name, digest }: Asked, { status, body }: Answer): Promise<void> {
    const { store, vault, clock } = this.#parts
    try {
      // It was refused: nothing has happened, unless by the one before, and a mended request may use the key.
      if (status >= 400 && status < 500 && !run.again) return await store.deleteEntry(KIND, orgId, name)
      const sealed = () => Buffer.from(vault.seal(body, name)).toString("base64")
      const answer = status < 300 ? { status, sealed: sealed() } : null
      const record: Kept = { digest, seed: run.seed, broken: answer === null, answer }
      await store.saveEntry({ ...next(run.entry, clock.now()), body: JSON.stringify(record) })
    } finally {
      this.#running.delete(orgId + name)
      run.end()
    }
  }

  /** Null when somebody else was faster. */
  async #take(
    { orgId, name, digest }: Asked,
    before: Entry | null,
    seed: string,
    now: number,
  ): Promise<Run | null> {
    const record: Kept = { digest, seed, broken: false, answer: null }
    const none = {
      kind: KIND,
      orgId,
      name,
      version: 0,
      createdAt: now,
      updatedAt: now,
      expiresAt: null,
    } as const
    const entry = { ...next(before ?? { ...none, body: "" }, now), body: JSON.stringify(record) }
    try {
      await this.#parts.store.saveEntry(entry)
    } catch (error) {
      if (hasCode(error, "conflict")) return null
      throw error
    }
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const run = { entry, seed, atMs: entry.createdAt, again: before !== null, over, end }
    this.#running.set(orgId + name, run)
    return run
  }

  #open(sealed: string, { name }: Asked): string {
    return this.#parts.vault.open(Buffer.from(sealed, "base64"), name)
  }

  #seed(): string {
    const bytes = new Uint8Array(24)
    this.#parts.randomBytes(bytes)
    return Buffer.from(bytes).toString("base64")
  }
}

function next(entry: Entry, now: number): Entry {
  return { ...entry, version: entry.version + 1, updatedAt: now, expiresAt: entry.createdAt + KEPT_MS }
}
