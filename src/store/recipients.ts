/** The endpoints of one application, as accepting a message must know them. */
import { BoundedCache } from "../core/bounded-cache.ts"
import { type Subscription, wantsChannels, wantsType } from "../core/match.ts"
import type { NewMessage } from "./store.ts"

export interface Subscriber extends Subscription {
  readonly id: string
  readonly url: string
  readonly ordered: boolean
}

/** Of all lists by type together. */
const MOST_LISTED = 10_000

export class Recipients<S extends Subscriber = Subscriber> {
  readonly appId: string
  readonly subscribers: readonly S[]
  /** Looked through once for each type: of 100 endpoints, for each message, that was 3 µs of 70. */
  readonly #byType = new BoundedCache<string, readonly S[]>(MOST_LISTED)

  constructor(appId: string, subscribers: readonly S[]) {
    this.appId = appId
    this.subscribers = subscribers
  }

  of({ to, eventType, channels }: NewMessage): readonly S[] {
    if (to !== null) return this.subscribers.filter(({ id }) => id === to)
    return this.#ofType(eventType).filter((one) => wantsChannels(one, channels))
  }

  #ofType(eventType: string): readonly S[] {
    const known = this.#byType.get(eventType)
    if (known !== undefined) return known
    const found = this.subscribers.filter((one) => wantsType(one, eventType))
    // One for the type: there may be many that nobody wants.
    this.#byType.set(eventType, found, 1 + found.length)
    return found
  }
}
