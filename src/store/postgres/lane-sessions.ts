/**
 * Lane sessions on PostgreSQL. A handed delivery has the session's token as a mark in its row; a fetched delivery is recorded in the lane's
 * row. The session knows its deliveries: any other mark or record with its token comes from a lost reply.
 */
import type { Moment } from "../../core/clock.ts"
import { fenceGiveBack, fenceSettlement } from "../fence.ts"
import { LentPlaces, OpenLane } from "../open-lane.ts"
import type {
  ClaimedDelivery,
  GivenBack,
  LaneClaim,
  LaneListener,
  LaneSession,
  LaneWant,
  LaneWork,
  Settlement,
  SettleResult,
} from "../store.ts"
import type { Pipelines } from "./pipeline.ts"

/** An open lane, as a parameter of the statement that accepts messages. */
export interface Offer {
  readonly session: Session
  /** The endpoint's version that the session knows. */
  readonly version: number
  readonly room: number
  readonly starting: number
}

export class LaneSessions {
  readonly #pipelines: Pipelines
  readonly #pool = new LentPlaces()
  readonly #byEndpoint = new Map<string, Session>()
  #owner = 0

  constructor(pipelines: Pipelines) {
    this.#pipelines = pipelines
  }

  open(claim: LaneClaim, listener: LaneListener, knownVersion: number | null): LaneSession {
    const { endpointId } = claim
    const onClosed = () => {
      if (this.#byEndpoint.get(endpointId) === session) this.#byEndpoint.delete(endpointId)
    }
    const session: Session = new Session(
      this.#pipelines,
      this.#pool,
      claim,
      listener,
      knownVersion,
      (owner) => this.#isOurs(owner),
      onClosed,
    )
    this.#byEndpoint.set(endpointId, session)
    return session
  }

  /** The worker of this process. After a lost lease it has a higher number, and the lanes of the old one belong to others. */
  get owner(): number {
    return this.#owner
  }

  #isOurs(owner: number): boolean {
    if (owner < this.#owner) return false
    if (owner > this.#owner) for (const session of this.#byEndpoint.values()) session.shut()
    this.#owner = owner
    return true
  }

  /** Null: deliveries have to be fetched. Every offer ends with the session's `endOffer`. */
  offer(endpointId: string): Offer | null {
    return this.#byEndpoint.get(endpointId)?.offer() ?? null
  }

  /** No handoffs until a fetch opens the lane: they would overtake a delivery that waits. */
  shut(endpointId: string): void {
    this.#byEndpoint.get(endpointId)?.shut()
  }
}

export class Session implements LaneSession {
  readonly claim: LaneClaim
  readonly #pipelines: Pipelines
  readonly #pool: LentPlaces
  readonly #listener: LaneListener
  readonly #isOurs: (owner: number) => boolean
  readonly #onClosed: () => void
  /** Deliveries in hand, by `seq`. */
  readonly #handed = new Set<number>()
  readonly #fetched = new Set<number>()
  #knownVersion: number | null
  #isOpen = false
  #places: OpenLane | null = null
  /** Statements in flight that may hand over deliveries. */
  #offers = 0
  readonly #onDecided: (() => void)[] = []
  /** Settles in flight; their deliveries take no place. */
  #settling = 0
  #received = 0
  /** A fetch that began before the lane was shut does not open it. */
  #closings = 0
  #isRecalled = false
  #recalls = 0

  constructor(
    pipelines: Pipelines,
    pool: LentPlaces,
    claim: LaneClaim,
    listener: LaneListener,
    knownVersion: number | null,
    isOurs: (owner: number) => boolean,
    onClosed: () => void,
  ) {
    this.#pipelines = pipelines
    this.#pool = pool
    this.claim = claim
    this.#listener = listener
    this.#knownVersion = knownVersion
    this.#isOurs = isOurs
    this.#onClosed = onClosed
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  get handed(): Iterable<number> {
    return this.#handed
  }

  get fetched(): Iterable<number> {
    return this.#fetched
  }

  shut(): void {
    this.#isOpen = false
    this.#closings++
  }

  #recall(): void {
    this.shut()
    this.#isRecalled = true
    this.#recalls++
  }

  offer(): Offer | null {
    if (!this.#isOpen) return null
    const { room, starting } = this.#places!
    if (room === 0) {
      this.shut()
      return null
    }
    this.#offers++
    return { session: this, version: this.#knownVersion!, room, starting: Math.max(0, starting) }
  }

  endOffer(): void {
    if (--this.#offers > 0) return
    for (const decided of this.#onDecided.splice(0)) decided()
  }

  receive(delivery: ClaimedDelivery): void {
    this.#handed.add(delivery.seq)
    this.#received++
    this.#places?.take(delivery.payload?.length ?? 0)
    if (this.#isRecalled) this.#listener.recalled(delivery)
    else this.#listener.handed(delivery)
  }

  /** Resolves when no statement in flight may hand over deliveries. */
  async #decided(): Promise<void> {
    if (this.#offers > 0) await new Promise<void>((resolve) => this.#onDecided.push(resolve))
  }

  async fetch(want: LaneWant, at: Moment): Promise<LaneWork> {
    const before = {
      isOpen: this.#isOpen,
      closings: this.#closings,
      recalls: this.#recalls,
      received: this.#received,
    }
    // Handoffs in flight arrive before the fetch, so that it finds them in hand, and before it returns.
    if (!before.isOpen) await this.#decided()
    const { endpointId, token } = this.claim
    const lane = { ...want, endpointId, token, knownVersion: this.#knownVersion }
    try {
      const { lost, opens, owner, ...work } = await this.#pipelines.fetch({
        ...lane,
        at,
        isOpen: before.isOpen,
        session: this,
      })
      for (const { seq } of work.deliveries) this.#fetched.add(seq)
      const version = work.endpoint?.version ?? this.#knownVersion
      const isSame = before.isOpen && version === this.#knownVersion
      this.#knownVersion = version
      if (!opens || before.closings !== this.#closings || !this.#isOurs(owner)) this.shut()
      else if (isSame) for (const _ of work.deliveries) this.#places!.hold()
      else this.#open(want, work.deliveries.length + this.#received - before.received)
      if (before.recalls === this.#recalls) this.#isRecalled = false
      if (lost) this.#listener.lost()
      if (!this.#isOpen) await this.#decided()
      return work
    } catch (error) {
      this.shut()
      await this.#decided()
      throw error
    }
  }

  /** `more` deliveries came into hand since the caller counted. */
  #open({ handoffPlaces, starting }: LaneWant, more: number): void {
    this.#places?.forget()
    this.#places = new OpenLane(this.#pool, {
      token: this.claim.token,
      places: handoffPlaces,
      inHand: this.#fetched.size + this.#handed.size - this.#settling,
      starting: starting - more,
    })
    this.#isOpen = true
  }

  settleIfClaimed(outcomes: readonly Settlement[]): Promise<SettleResult[]> {
    if (outcomes.some(({ gate }) => gate?.closes)) this.#recall()
    return Promise.all(outcomes.map((outcome) => this.#settleOne(outcome)))
  }

  async #settleOne(outcome: Settlement): Promise<SettleResult> {
    const { seq } = outcome.delivery
    // The end of the request frees the place: if settles in flight counted, a lane would often be full.
    this.#settling++
    this.#places?.free()
    let isWritten = false
    try {
      const ended = { claim: fenceSettlement(this.claim, outcome), wasHanded: this.#handed.has(seq) }
      return await this.#pipelines.settle(ended, () => {
        isWritten = true
        this.#settling--
        this.#letGo(seq)
      })
    } finally {
      if (!isWritten) {
        this.#settling--
        this.shut()
        this.#places?.hold()
      }
    }
  }

  async giveBack(unsent: readonly GivenBack[]): Promise<void> {
    this.#recall()
    await Promise.all(
      unsent.map((one) => {
        const { seq } = one.delivery
        const ended = { claim: fenceGiveBack(this.claim, one), wasHanded: this.#handed.has(seq) }
        return this.#pipelines.giveBack(ended, () => {
          this.#places?.free()
          this.#letGo(seq)
        })
      }),
    )
  }

  async close(): Promise<void> {
    this.shut()
    await this.#decided()
    this.#places?.forget()
    this.#onClosed()
  }

  #letGo(seq: number): void {
    this.#handed.delete(seq)
    this.#fetched.delete(seq)
  }
}
