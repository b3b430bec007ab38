/**
 * Responses to requests with an idempotency key, stored for twelve hours and encrypted, since some contain a secret. A record with the
 * seed of the request's ids is written first; a repeat waits for its response. If none comes within seconds, the process has died:
 * the repeat runs the request with the same seed, which makes the same ids.
 */
import type { Clock } from "../core/clock.ts"
import { hasCode, PosthornError } from "../core/errors.ts"
import type { RandomBytes } from "../core/ids.ts"
import type { Vault } from "../core/vault.ts"
import type { Entry, Store } from "../store/store.ts"

export interface StoredResponse {
  readonly status: number
  readonly body: string
}

export interface IdempotentRequest {
  readonly orgId: string
  /** Digest of the URL, the caller and the idempotency key. */
  readonly name: string
  /** Digest of the body. */
  readonly digest: string
}

interface ResponseRecord {
  readonly digest: string
  readonly seed: string
  /** The run ended without a response to store, and may have taken effect. */
  readonly broken: boolean
  readonly answer: { readonly status: number; readonly sealed: string } | null
}

/** The right to run a request. */
export interface RequestRun {
  readonly entry: Entry
  readonly seed: string
  readonly atMs: number
  /** An earlier run was lost, and may have taken effect. */
  readonly resumed: boolean
  /** Resolves at the end of the run, for repeats in this process. */
  readonly over: Promise<void>
  end(): void
}

export interface IdempotencyDependencies {
  readonly store: Store
  readonly clock: Clock
  readonly vault: Vault
  readonly randomBytes: RandomBytes
}

const KIND = "answer"
const KEPT_MS = 12 * 3_600_000
const TAKEOVER_MS = 5000
const POLL_MS = 100

export class IdempotentResponses {
  readonly #dependencies: IdempotencyDependencies
  readonly #running = new Map<string, RequestRun>()

  constructor(dependencies: IdempotencyDependencies) {
    this.#dependencies = dependencies
  }

  /** The stored response, or the right to run the request. Throws `conflict` for another body. */
  async begin(request: IdempotentRequest): Promise<StoredResponse | RequestRun> {
    const { store, clock } = this.#dependencies
    for (;;) {
      await this.#running.get(request.orgId + request.name)?.over
      const now = clock.now()
      const entry = await store.getEntry(KIND, request.orgId, request.name, now)
      const record: ResponseRecord | null = entry === null ? null : JSON.parse(entry.body)
      if (record !== null && record.digest !== request.digest)
        throw new PosthornError("conflict", "the idempotency key was used before with another body")
      if (record?.answer)
        return { status: record.answer.status, body: this.#open(record.answer.sealed, request) }
      if (entry !== null && !record!.broken && now - entry.updatedAt < TAKEOVER_MS) {
        await new Promise<void>((resolve) => clock.setTimer(POLL_MS, resolve))
        continue
      }
      const run = await this.#claim(request, entry, record?.seed ?? this.#seed(), now)
      if (run !== null) return run
    }
  }

  async finish(
    run: RequestRun,
    { orgId, name, digest }: IdempotentRequest,
    { status, body }: StoredResponse,
  ): Promise<void> {
    const { store, vault, clock } = this.#dependencies
    try {
      // The request was refused and changed nothing (a lost run might have): a corrected one may reuse the key.
      if (status >= 400 && status < 500 && !run.resumed) return await store.deleteEntry(KIND, orgId, name)
      const sealed = () => Buffer.from(vault.seal(body, name)).toString("base64")
      const answer = status < 300 ? { status, sealed: sealed() } : null
      const record: ResponseRecord = { digest, seed: run.seed, broken: answer === null, answer }
      await store.saveEntryIfUnchanged({ ...next(run.entry, clock.now()), body: JSON.stringify(record) })
    } finally {
      this.#running.delete(orgId + name)
      run.end()
    }
  }

  /** Null when another repeat was faster. */
  async #claim(
    { orgId, name, digest }: IdempotentRequest,
    before: Entry | null,
    seed: string,
    now: number,
  ): Promise<RequestRun | null> {
    const record: ResponseRecord = { digest, seed, broken: false, answer: null }
    const times = { createdAt: now, updatedAt: now, expiresAt: null }
    const entry = {
      ...next(before ?? { kind: KIND, orgId, name, version: 0, ...times, body: "" }, now),
      body: JSON.stringify(record),
    }
    try {
      await this.#dependencies.store.saveEntryIfUnchanged(entry)
    } catch (error) {
      if (hasCode(error, "conflict")) return null
      throw error
    }
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const run = { entry, seed, atMs: entry.createdAt, resumed: before !== null, over, end }
    this.#running.set(orgId + name, run)
    return run
  }

  #open(sealed: string, { name }: IdempotentRequest): string {
    return this.#dependencies.vault.open(Buffer.from(sealed, "base64"), name)
  }

  #seed(): string {
    const bytes = new Uint8Array(24)
    this.#dependencies.randomBytes(bytes)
    return Buffer.from(bytes).toString("base64")
  }
}

function next(entry: Entry, now: number): Entry {
  return { ...entry, version: entry.version + 1, updatedAt: now, expiresAt: entry.createdAt + KEPT_MS }
}
