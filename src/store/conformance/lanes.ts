/** Lane sessions by endpoint and token, for tests that play several workers on one store. */
import type {
  ClaimedDelivery,
  GivenBack,
  LaneListener,
  LaneSession,
  LaneWant,
  LaneWork,
  Settlement,
  SettleResult,
  Store,
} from "../store.ts"

/** The session of a fetch, a settle or a give-back. */
export interface OfLane {
  readonly endpointId: string
  readonly token: number
}

export interface TestFetch extends OfLane {
  readonly want: LaneWant
  /** Given: a new session with this version of the endpoint, or null for none. Left out: the existing session. */
  readonly knownVersion?: number | null
  /** The endpoint's application, for tests of roll-ups. */
  readonly appId?: string
}

class TestSession implements LaneListener {
  readonly session: LaneSession
  readonly handedOver: ClaimedDelivery[] = []
  readonly recalledLate: ClaimedDelivery[] = []
  isLost = false

  constructor(
    store: Store,
    { endpointId, token, appId = "" }: OfLane & Pick<TestFetch, "appId">,
    knownVersion: number | null,
  ) {
    this.session = store.openLane({ endpointId, appId, token }, this, knownVersion)
  }

  handed(delivery: ClaimedDelivery): void {
    this.handedOver.push(delivery)
  }

  recalled(delivery: ClaimedDelivery): void {
    this.recalledLate.push(delivery)
  }

  lost(): void {
    this.isLost = true
  }
}

export class TestLanes {
  readonly #store: Store
  readonly #sessions = new Map<string, TestSession>()

  constructor(store: Store) {
    this.#store = store
  }

  of(lane: OfLane & Pick<TestFetch, "appId">, knownVersion?: number | null): TestSession {
    const key = `${lane.endpointId} ${lane.token}`
    const known = this.#sessions.get(key)
    if (known !== undefined && knownVersion === undefined) return known
    const session = new TestSession(this.#store, lane, knownVersion ?? null)
    this.#sessions.set(key, session)
    return session
  }

  async fetch(
    lane: TestFetch,
    now: number,
    wall = now,
  ): Promise<LaneWork & { readonly lost: boolean; readonly open: boolean }> {
    const test = this.of(lane, lane.knownVersion)
    const work = await test.session.fetch(lane.want, { now, wall })
    return { ...work, lost: test.isLost, open: test.session.isOpen }
  }

  async settle(settlements: readonly (OfLane & Settlement)[]): Promise<SettleResult[]> {
    const results = await Promise.all(settlements.map((one) => this.of(one).session.settleIfClaimed([one])))
    return results.flat()
  }

  async giveBack(unsent: readonly (OfLane & GivenBack)[]): Promise<void> {
    await Promise.all(unsent.map((one) => this.of(one).session.giveBack([one])))
  }
}

const BY_STORE = new WeakMap<Store, TestLanes>()

export function lanesOf(store: Store): TestLanes {
  const lanes = BY_STORE.get(store) ?? new TestLanes(store)
  BY_STORE.set(store, lanes)
  return lanes
}
