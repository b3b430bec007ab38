/**
 * Lane sessions on the main thread. The store's thread claims deliveries for open lanes and answers in the order of its transactions, so
 * that a session has received every handoff that was committed before the answer to its own call.
 */
import type { Moment } from "../../core/clock.ts"
import { type FetchedLane, fenceGiveBack, fenceSettlement } from "../fence.ts"
import { firstDelivery } from "../first-delivery.ts"
import type {
  Accepted,
  ClaimedDelivery,
  GivenBack,
  LaneClaim,
  LaneListener,
  LaneSession,
  LaneWake,
  LaneWant,
  LaneWork,
  NewMessage,
  Settlement,
  SettleResult,
} from "../store.ts"
import type { AcceptedOnThread } from "./accept.ts"
import type { Channel } from "./channel.ts"

export class LaneSessions {
  readonly #writer: Channel
  readonly #byEndpoint = new Map<string, Session>()

  constructor(writer: Channel) {
    this.#writer = writer
  }

  open(claim: LaneClaim, listener: LaneListener, knownVersion: number | null): LaneSession {
    const { endpointId } = claim
    const session: Session = new Session(this.#writer, claim, listener, knownVersion, () => {
      if (this.#byEndpoint.get(endpointId) === session) this.#byEndpoint.delete(endpointId)
    })
    this.#byEndpoint.set(endpointId, session)
    return session
  }

  accept(messages: readonly NewMessage[], tx?: unknown): Promise<Accepted[]> {
    return this.#writer.call("accept", [messages, tx], (accepted) =>
      (accepted as AcceptedOnThread[]).map((one, i) => this.#handOver(messages[i]!, one)),
    )
  }

  #handOver(message: NewMessage, { lanes, ...accepted }: AcceptedOnThread): Accepted {
    const wakes: LaneWake[] = []
    for (const { handed, ...lane } of lanes) {
      if (handed === undefined) wakes.push(lane)
      else if (!this.#handTo(lane.endpointId, handed.token, firstDelivery(message, handed.seq, handed.id)))
        wakes.push(lane)
    }
    return { ...accepted, lanes: wakes }
  }

  /** False when the session ended while its lane was open: the delivery is given back for the lane's next owner. */
  #handTo(endpointId: string, token: number, delivery: ClaimedDelivery): boolean {
    const session = this.#byEndpoint.get(endpointId)
    if (session?.claim.token === token) {
      session.receive(delivery)
      return true
    }
    const unsent = fenceGiveBack({ endpointId, appId: "", token }, { delivery, attempt: null })
    this.#writer.call("giveBack", [[unsent]]).catch(() => {})
    return false
  }
}

class Session implements LaneSession {
  readonly claim: LaneClaim
  readonly #writer: Channel
  readonly #listener: LaneListener
  readonly #onClosed: () => void
  #knownVersion: number | null
  #inHand = 0
  #isOpen = false
  /** Whether the lane may be open on the thread. */
  #wasOpened = false
  #isRecalled = false
  /** A fetch that began before a recall does not open the lane. */
  #recalls = 0

  constructor(
    writer: Channel,
    claim: LaneClaim,
    listener: LaneListener,
    knownVersion: number | null,
    onClosed: () => void,
  ) {
    this.#writer = writer
    this.claim = claim
    this.#listener = listener
    this.#knownVersion = knownVersion
    this.#onClosed = onClosed
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  receive(delivery: ClaimedDelivery): void {
    this.#inHand++
    if (this.#isRecalled) this.#listener.recalled(delivery)
    else this.#listener.handed(delivery)
  }

  async fetch(want: LaneWant, at: Moment): Promise<LaneWork> {
    const { endpointId, token } = this.claim
    const lane = { ...want, endpointId, token, knownVersion: this.#knownVersion }
    const recalls = this.#recalls
    this.#wasOpened ||= want.handoffPlaces > 0
    try {
      return await this.#writer.call("fetch", [lane, this.#inHand, at], (answer) => {
        const { lost: _, open, ...work } = answer as FetchedLane
        this.#inHand += work.deliveries.length
        const isCurrent = recalls === this.#recalls
        this.#isOpen = open && isCurrent
        if (isCurrent) this.#isRecalled = false
        this.#knownVersion = work.endpoint?.version ?? this.#knownVersion
        return work
      })
    } catch (error) {
      this.#isOpen = false
      throw error
    }
  }

  settleIfClaimed(outcomes: readonly Settlement[]): Promise<SettleResult[]> {
    if (outcomes.some(({ gate }) => gate?.closes)) this.#recall()
    const fenced = outcomes.map((outcome) => fenceSettlement(this.claim, outcome))
    return this.#writer.call("settle", [fenced], (results) => {
      this.#inHand -= outcomes.length
      return results as SettleResult[]
    })
  }

  async giveBack(unsent: readonly GivenBack[]): Promise<void> {
    this.#recall()
    if (unsent.length === 0) return
    await this.#writer.call("giveBack", [unsent.map((one) => fenceGiveBack(this.claim, one))])
    this.#inHand -= unsent.length
  }

  async close(): Promise<void> {
    this.#recall()
    try {
      const { endpointId, token } = this.claim
      if (this.#wasOpened) await this.#writer.call("closeLane", [endpointId, token])
    } finally {
      this.#onClosed()
    }
  }

  #recall(): void {
    this.#isOpen = false
    this.#isRecalled = true
    this.#recalls++
  }
}
