/**
 * The turns of one worker, one after the other: each is one statement that gives lanes back, folds wakes and takes lanes. A turn
 * whose end is not known (the connection broke) may have taken lanes and used up wakes; what we have is then counted again first.
 */

import { EndOfTick } from "../../end-of-tick.ts"
import type { Database } from "../../store/postgres/connection.ts"
import { NEVER } from "../../store/postgres/lane-functions.ts"
import type { Statement } from "../../store/postgres/statement.ts"
import type { Row } from "../../store/rows.ts"
import type { LaneClaim } from "../../store/store.ts"
import { Bell } from "./bell.ts"
import { Claims, type Release } from "./claims.ts"
import type { Lease } from "./lease.ts"
import { type LaneTime, NO_PROPOSAL, type Proposal, type Proposer } from "./proposer.ts"

const TURN: Statement = {
  name: "lanes.turn",
  text: "SELECT * FROM posthorn_turn($1, $2, $3, $4, $5, $6, $7, $8, $9)",
}
const RECOUNT: Statement = { name: "lanes.recount", text: "SELECT * FROM posthorn_recount($1)" }

export interface Turn {
  readonly granted: readonly LaneClaim[]
  /** Lanes that we had and that were woken. */
  readonly woken: readonly LaneClaim[]
  readonly nextAt: number | null
  /** Whether lanes are due that were not taken; and whether that is although there was room for them. */
  readonly waiting: boolean
  readonly missed: boolean
  /** Whether wakes were left to fold, or lanes of ours to look at. */
  readonly unfinished: boolean
}

/** Of a turn whose worker is no more. */
const NOTHING: Turn = {
  granted: [],
  woken: [],
  nextAt: null,
  waiting: false,
  missed: false,
  unfinished: false,
}

const RELEASING = new EndOfTick<Turns>((turns) => turns.flushUnlessBusy())

export class Turns {
  readonly #database: Database
  readonly #lease: Lease
  readonly #proposer: Proposer | null
  readonly #claims = new Claims()
  /** For what could not be given back because somebody has it locked. */
  readonly #later = new Bell(() => void this.flush())
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #releasedAt = 0
  #epoch = 0
  #unsure = false

  constructor(database: Database, lease: Lease, proposer: Proposer | null) {
    this.#database = database
    this.#lease = lease
    this.#proposer = proposer
  }

  release(claim: LaneClaim, nextDueAt: number | null, now: number): Promise<void> {
    const released = this.#claims.release(claim, nextDueAt)
    this.#releasedAt = now
    this.flushSoon()
    return released
  }

  /** Gives back by itself what no claim has taken along by then. */
  flushSoon(): void {
    if (this.#claims.hasFreeReleases) RELEASING.add(this)
  }

  /** A claim that is under way takes along what is to be given back. */
  flushUnlessBusy(): void {
    if (this.#waiting === 0) void this.flush()
  }

  /** Resolves when no turn is under way, and all is given back that could be. */
  async flush(): Promise<void> {
    await this.#last
    if (this.#claims.hasReleases) await this.take(null, this.#releasedAt).catch(() => {})
  }

  /** At most so many lanes; null: only gives back. */
  take(most: number | null, now: number): Promise<Turn> {
    this.#waiting++
    const turn = this.#last.then(() => this.#take(most, now))
    this.#last = turn.then(
      (made) => made !== NOTHING && this.flushSoon(),
      () => {},
    )
    return turn.finally(() => this.#waiting--)
  }

  /** None of the claims stands any more. */
  forget(): void {
    this.#claims.forget()
    this.#later.stop()
    this.#epoch = 0
    this.#unsure = false
  }

  async #take(most: number | null, now: number): Promise<Turn> {
    const { worker } = this.#lease
    if (this.#unsure) await this.#recount()
    const proposal = await this.#propose(most, now)
    const releases = this.#claims.takeReleases()
    const row = await this.#run(worker, releases, most, proposal, now)
    if (worker !== this.#lease.worker) {
      for (const { written } of releases) written()
      return NOTHING
    }
    if (!row.alive) {
      this.#claims.keepReleases(releases, false)
      this.#lease.renewNow()
      return NOTHING
    }
    return this.#note(row, releases, most, now)
  }

  async #propose(most: number | null, now: number): Promise<Proposal> {
    return (await this.#proposer?.propose(most ?? 0, now)) ?? NO_PROPOSAL
  }

  async #run(
    worker: number,
    releases: readonly Release[],
    most: number | null,
    proposal: Proposal,
    now: number,
  ): Promise<Row> {
    const given = releases.map(({ claim }) => claim.endpointId)
    const tokens = releases.map(({ claim }) => claim.token)
    const dues = releases.map(({ dueAt }) => dueAt ?? NEVER)
    try {
      const values = [worker, this.#epoch, now, most, given, tokens, dues, proposal.lanes, proposal.behindMs]
      return (await this.#database.run(TURN, values))[0]!
    } catch (error) {
      this.#unsure = true
      if (worker === this.#lease.worker) this.#claims.keepReleases(releases, false)
      else for (const { written } of releases) written()
      throw error
    }
  }

  #note(row: Row, releases: readonly Release[], most: number | null, now: number): Turn {
    // First of all: a wake that this turn brings for one of them is to find it.
    const left = this.#written(releases, row.kept as string[])
    this.#later.done(left === 0)
    const claims = toClaims(row)
    const granted = claims.slice(0, claims.length - (row.woken as number))
    this.#claims.granted(granted)
    this.#claims.woken(claims.slice(granted.length))
    const missed = (row.waiting as boolean) && granted.length < (most ?? 0)
    if (missed) this.#proposer?.missed()
    if (row.told !== null) this.#proposer?.learn(toTimes(row, granted), now)
    return {
      granted,
      woken: most === null ? [] : this.#claims.takeWoken(),
      nextAt: row.next_at as number | null,
      waiting: row.waiting as boolean,
      missed,
      unfinished: row.unfinished as boolean,
    }
  }

  #written(releases: readonly Release[], kept: readonly string[]): number {
    const { left = [], done = [] } = Object.groupBy(releases, ({ claim }) =>
      kept.includes(claim.endpointId) ? "left" : "done",
    )
    this.#claims.keepReleases(left, true)
    for (const { written } of done) written()
    return left.length
  }

  async #recount(): Promise<void> {
    const { worker } = this.#lease
    const [row] = await this.#database.run(RECOUNT, [worker])
    if (worker !== this.#lease.worker || row!.at_epoch === null) return
    this.#epoch = row!.at_epoch as number
    this.#unsure = false
    this.#claims.woken(toClaims(row!))
  }
}

function toClaims({ claimed, apps, tokens }: Row): LaneClaim[] {
  return (claimed as string[]).map((endpointId, i) => ({
    endpointId,
    appId: (apps as string[])[i]!,
    token: Number((tokens as string[])[i]),
  }))
}

function toTimes({ told, told_apps, told_times }: Row, granted: readonly LaneClaim[]): LaneTime[] {
  const ours = new Set(granted.map(({ endpointId }) => endpointId))
  return (told as string[]).map((endpointId, i) => {
    const appId = (told_apps as string[])[i]!
    const time = (told_times as (string | null)[])[i]!
    return { endpointId, appId, dueAt: time === null ? null : Number(time), isOurs: ours.has(endpointId) }
  })
}
