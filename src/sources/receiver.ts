/**
 * Takes in what providers send to sources. Everything that can be refused without the body is refused before it is read, and everything
 * that is accepted is committed before it is answered.
 */
import { BoundedCache } from "../core/bounded-cache.ts"
import { hasCode } from "../core/errors.ts"
import { signedHandshake, unsignedHandshake } from "../core/handshake.ts"
import type { RefusalReason } from "../core/inbound-results.ts"
import type { ReceivedRequest } from "../core/received-request.ts"
import { verify } from "../core/verification.ts"
import { RecentCount } from "../engine/limits.ts"
import { Messages } from "../resources/messages.ts"
import type { ResourceContext } from "../resources/resource-context.ts"
import { ActivityLog, type RequestFacts } from "./activity-log.ts"
import { inboundMessage } from "./inbound-message.ts"
import { accepted, challengeAnswered, type Receipt, refused } from "./receipt.ts"
import { forgetSource, type OpenSource, SourceRing, type SourceRingParts } from "./source-ring.ts"
import { areValid } from "./source-secrets.ts"

const MOST_RATES = 10_000
const RATE_SPAN_MS = 1000
const RATE_PARTS = 10

export class Receiver {
  readonly #ring: SourceRing
  readonly #rates = new BoundedCache<string, RecentCount>(MOST_RATES)
  readonly #activity: ActivityLog
  readonly #context: () => ResourceContext

  /** The context is complete when the first request comes. */
  constructor(parts: SourceRingParts, context: () => ResourceContext) {
    this.#ring = new SourceRing(parts)
    this.#activity = new ActivityLog(parts.store, parts.clock)
    this.#context = context
  }

  /** The source of a token, if it takes a request now. `size`: of the body, if it was declared. */
  admit(
    token: string,
    size: number,
    facts: RequestFacts,
  ): OpenSource | Receipt | Promise<OpenSource | Receipt> {
    const found = this.#ring.find(token)
    if (!(found instanceof Promise)) return this.#admit(found, size, facts)
    return found.then(
      (source) => this.#admit(source, size, facts),
      (error) => refused("unavailable", error),
    )
  }

  /** From the cache alone: null also for a source that it does not have. Another process may have changed or deleted it. */
  cached(token: string): OpenSource | null {
    return this.#ring.cached(token)
  }

  mostBytes({ record }: OpenSource): number {
    const { maxPayloadBytes } = this.#context()
    return Math.min(record.maxBytes ?? maxPayloadBytes, maxPayloadBytes)
  }

  /** After a body that took time: its source may have been changed, disabled or deleted meanwhile. Rejects when it cannot be read. */
  async takeIfOpen(token: string, request: ReceivedRequest, facts: RequestFacts): Promise<Receipt> {
    const source = this.#open(await this.#ring.find(token), facts)
    return "status" in source ? source : this.take(source, request, facts)
  }

  /** Never rejects. The body is within the source's limit. */
  async take(source: OpenSource, request: ReceivedRequest, facts: RequestFacts): Promise<Receipt> {
    const { secrets, scheme, handshake } = source
    const unsigned = unsignedHandshake(handshake, request, secrets.verifyToken)
    if (unsigned !== null) return this.#answerChallenge(source, unsigned.answer, facts)
    const context = this.#context()
    const wallNow = context.clock.wallNow()
    const keys = areValid(secrets.signing, wallNow).map(({ key }) => key)
    const problem = verify(scheme, keys, request, wallNow / 1000)
    if (problem !== null) return this.refuse(source, "signature", facts, problem)
    const signed = signedHandshake(handshake, request)
    if (signed !== null) return this.#answerChallenge(source, signed.answer, facts)
    try {
      const messages = new Messages({ ...context, orgId: source.orgId })
      const sent = await messages.send(source.appId, ...inboundMessage(source, request))
      const receipt = accepted(sent.id, sent.duplicate)
      this.#activity.taken(source, sent.duplicate ? "duplicate" : "accepted")
      return receipt
    } catch (error) {
      // The application was deleted a moment ago.
      if (hasCode(error, "not_found")) {
        forgetSource(context.store, source.id)
        return refused("unknown")
      }
      return this.refuse(source, "unavailable", facts, null, error)
    }
  }

  refuse(
    source: OpenSource,
    reason: RefusalReason,
    facts: RequestFacts,
    detail: string | null = null,
    error: unknown = null,
  ): Receipt {
    this.#activity.refused(source, reason, detail, facts)
    return refused(reason, error)
  }

  /** Writes the activity that was not written yet. */
  flush(): Promise<void> {
    return this.#activity.flush()
  }

  #open(source: OpenSource | null, facts: RequestFacts): OpenSource | Receipt {
    if (source === null) return refused("unknown")
    return source.record.enabled ? source : this.refuse(source, "unknown", facts, "disabled")
  }

  #admit(found: OpenSource | null, size: number, facts: RequestFacts): OpenSource | Receipt {
    const source = this.#open(found, facts)
    if ("status" in source) return source
    const { record, id } = source
    const now = this.#context().clock.now()
    const rate = this.#rateOf(id)
    if (rate.sum(now) >= record.rateLimit) return this.refuse(source, "rate", facts)
    rate.add(now)
    return size > this.mostBytes(source) ? this.refuse(source, "size", facts) : source
  }

  #rateOf(id: string): RecentCount {
    const known = this.#rates.get(id)
    if (known !== undefined) return known
    const rate = new RecentCount(RATE_SPAN_MS, RATE_PARTS)
    this.#rates.set(id, rate)
    return rate
  }

  #answerChallenge(source: OpenSource, answer: string | null, facts: RequestFacts): Receipt {
    if (answer === null) return this.refuse(source, "handshake", facts)
    this.#activity.taken(source, "handshake")
    return challengeAnswered(answer)
  }
}
