/**
 * What this process's lanes were handed as it was accepted, and which of them are open for more. The database has the same in the rows' marks;
 * this says which marks of ours stand for a delivery that a lane here has, and which for one whose answer got lost.
 */
import { type Hand, type OpenLane, OpenLanes } from "../open-lanes.ts"
import type { Route } from "./routes.ts"

interface Lane extends OpenLane {
  /** The worker that has it: nothing is handed over when that is no more. */
  readonly owner: number
  /** Of the endpoint, as the lane's worker knows it. */
  readonly version: number
}

export interface Offer extends Hand {
  readonly owner: number
}

interface Held {
  readonly token: number
  readonly seqs: Set<number>
  /** How many are in a statement whose answer is not there yet. */
  offered: number
  readonly onDecided: (() => void)[]
}

export class Hands {
  readonly #open = new OpenLanes<Lane>()
  readonly #held = new Map<string, Held>()
  readonly #settling = new Map<string, number>()
  #owner = 0

  open(endpointId: string, lane: Lane): void {
    // An answer from before. Workers' numbers only rise.
    if (lane.owner < this.#owner) return
    // This process had another worker, which was taken for dead: what its lanes had is others' now.
    if (lane.owner > this.#owner) this.#forgetAll()
    this.#owner = lane.owner
    this.#open.open(endpointId, lane)
  }

  isOpen(endpointId: string, token: number): boolean {
    return this.#open.get(endpointId)?.token === token
  }

  /** So many beside what it is handed; false if it was closed meanwhile. */
  fetched(endpointId: string, token: number, count: number): boolean {
    for (let i = 0; i < count; i++) this.#open.unsettled(endpointId, token)
    return this.isOpen(endpointId, token)
  }

  close(endpointId: string): void {
    this.#open.close(endpointId)
  }

  /** Null when it has to be fetched. Every offer ends with `take` or `withdraw`. */
  offer({ id, version }: Route, payloadBytes: number): Offer | null {
    const lane = this.#open.get(id)
    if (lane === undefined) return null
    if (lane.version !== version) {
      this.close(id)
      return null
    }
    const hand = this.#open.take(id, payloadBytes)
    if (hand === null) return null
    this.#holding(id, lane.token).offered++
    return { ...hand, owner: lane.owner }
  }

  take(endpointId: string, { token }: Hand, seq: number): void {
    this.#of(endpointId, token)?.seqs.add(seq)
    this.#decide(endpointId, token)
  }

  /** It was not written, or is for somebody else to fetch: what comes after it must not overtake it. */
  withdraw(endpointId: string, { token }: Hand): void {
    this.close(endpointId)
    this.#decide(endpointId, token)
  }

  /** Whether a lane here has it. */
  has(endpointId: string, token: number, seq: number): boolean {
    return this.#of(endpointId, token)?.seqs.has(seq) ?? false
  }

  inHand(endpointId: string, token: number): readonly number[] {
    return [...(this.#of(endpointId, token)?.seqs ?? [])]
  }

  /** Resolves when nothing is on its way any more, and whoever was given it knows: that takes no longer than the turn in which it came. */
  async decided(endpointIds: readonly string[]): Promise<void> {
    const undecided = endpointIds.flatMap((id) => {
      const held = this.#held.get(id)
      return held === undefined || held.offered === 0 ? [] : [held]
    })
    if (undecided.length === 0) return
    await Promise.all(
      undecided.map(({ onDecided }) => new Promise<void>((resolve) => onDecided.push(resolve))),
    )
    await new Promise<void>((resolve) => setImmediate(resolve))
  }

  /** How many outcomes of the lane are on their way into the database. */
  settling(endpointId: string): number {
    return this.#settling.get(endpointId) ?? 0
  }

  /** Its place is free as soon as it was sent: with so many on their way to the database, a lane would often be full. */
  startSettling(endpointId: string, token: number): void {
    this.#open.settled(endpointId, token)
    this.#settling.set(endpointId, this.settling(endpointId) + 1)
  }

  /** The outcome could not be written, and will be tried again: it is in hand as before. */
  keep(endpointId: string, token: number): void {
    this.close(endpointId)
    this.#open.unsettled(endpointId, token)
  }

  endSettling(endpointId: string): void {
    const left = this.settling(endpointId) - 1
    if (left === 0) this.#settling.delete(endpointId)
    else this.#settling.set(endpointId, left)
  }

  giveBack(endpointId: string, token: number, seq: number): void {
    this.#open.settled(endpointId, token)
    this.letGo(endpointId, token, seq)
  }

  #forgetAll(): void {
    for (const { onDecided } of this.#held.values()) for (const decided of onDecided) decided()
    this.#held.clear()
    this.#open.forgetAll()
  }

  letGo(endpointId: string, token: number, seq: number): void {
    const held = this.#of(endpointId, token)
    if (held === undefined) return
    held.seqs.delete(seq)
    this.#forget(endpointId, held)
  }

  #of(endpointId: string, token: number): Held | undefined {
    const held = this.#held.get(endpointId)
    return held?.token === token ? held : undefined
  }

  #holding(endpointId: string, token: number): Held {
    const known = this.#of(endpointId, token)
    if (known !== undefined) return known
    const held = { token, seqs: new Set<number>(), offered: 0, onDecided: [] }
    this.#held.set(endpointId, held)
    return held
  }

  #decide(endpointId: string, token: number): void {
    const held = this.#of(endpointId, token)
    if (held === undefined || --held.offered > 0) return
    for (const decided of held.onDecided.splice(0)) decided()
    this.#forget(endpointId, held)
  }

  #forget(endpointId: string, { seqs, offered }: Held): void {
    if (seqs.size === 0 && offered === 0) this.#held.delete(endpointId)
  }
}
