/**
 * The claim rounds of one worker, one after the other: each is one statement that releases lanes, folds wakes and claims lanes. A round
 * whose result was lost with the connection may have claimed lanes and used up wakes, so the next one first recounts the worker's lanes.
 */

import { EndOfTick } from "../../end-of-tick.ts"
import type { Database } from "../../store/postgres/connection.ts"
import { NEVER } from "../../store/postgres/lane-functions.ts"
import type { Statement } from "../../store/postgres/statement.ts"
import type { Row } from "../../store/rows.ts"
import type { LaneClaim } from "../../store/store.ts"
import type { ServedLanes } from "../schedule.ts"
import { Claims, type Release } from "./claims.ts"
import { DebouncedSignal } from "./debounced-signal.ts"
import type { Lease } from "./lease.ts"
import { type LaneTime, NO_PROPOSAL, type Proposal, type Proposer } from "./proposer.ts"

const ROUND: Statement = {
  name: "lanes.claim-round",
  text: "SELECT * FROM posthorn_claim_round($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
}
const RECOUNT: Statement = { name: "lanes.recount", text: "SELECT * FROM posthorn_recount($1)" }

export interface ClaimRound {
  readonly granted: readonly LaneClaim[]
  /** Lanes that this worker had and that were woken. */
  readonly woken: readonly LaneClaim[]
  readonly nextAt: number | null
  /** Whether lanes are due that were not granted. */
  readonly waiting: boolean
  /** The same, although there was room for them. */
  readonly missed: boolean
  /** Whether wakes are left to fold, or locked lanes of this worker to report. */
  readonly unfinished: boolean
}

/** The result of a round whose worker has lost its lease. */
const NOTHING: ClaimRound = {
  granted: [],
  woken: [],
  nextAt: null,
  waiting: false,
  missed: false,
  unfinished: false,
}

const RELEASING = new EndOfTick<ClaimRounds>((rounds) => rounds.flushUnlessBusy())

export class ClaimRounds {
  readonly #database: Database
  readonly #lease: Lease
  readonly #proposer: Proposer | null
  readonly #claims = new Claims()
  served: ServedLanes = { transports: [], endpoints: [] }
  /** Retries releases of locked lanes. */
  readonly #lockedReleases = new DebouncedSignal(() => void this.flush())
  #last: Promise<unknown> = Promise.resolve()
  #queued = 0
  #releasedAt = 0
  #epoch = 0
  #resultLost = false

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

  /** At the end of the tick, unless a claim round takes the releases along. */
  flushSoon(): void {
    if (this.#claims.hasUnlockedReleases) RELEASING.add(this)
  }

  flushUnlessBusy(): void {
    if (this.#queued === 0) void this.flush()
  }

  /** Resolves when no round is in flight and all releases are written that can be. */
  async flush(): Promise<void> {
    await this.#last
    if (this.#claims.hasReleases) await this.run(null, this.#releasedAt).catch(() => {})
  }

  /** Claims at most `most` lanes; null: only writes releases. */
  run(most: number | null, now: number): Promise<ClaimRound> {
    this.#queued++
    const round = this.#last.then(() => this.#run(most, now))
    this.#last = round.then(
      (made) => made !== NOTHING && this.flushSoon(),
      () => {},
    )
    return round.finally(() => this.#queued--)
  }

  /** All claims are lost. */
  forget(): void {
    this.#claims.forget()
    this.#lockedReleases.stop()
    this.#epoch = 0
    this.#resultLost = false
  }

  async #run(most: number | null, now: number): Promise<ClaimRound> {
    const { worker } = this.#lease
    if (this.#resultLost) await this.#recount()
    const proposal = await this.#propose(most, now)
    const releases = this.#claims.takeReleases()
    const row = await this.#query(worker, releases, most, proposal, now)
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

  async #query(
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
      values.push(this.served.transports, this.served.endpoints)
      return (await this.#database.run(ROUND, values))[0]!
    } catch (error) {
      this.#resultLost = true
      if (worker === this.#lease.worker) this.#claims.keepReleases(releases, false)
      else for (const { written } of releases) written()
      throw error
    }
  }

  #note(row: Row, releases: readonly Release[], most: number | null, now: number): ClaimRound {
    // Before `woken`: a wake for a lane whose release was locked must find that release.
    this.#written(releases, row.kept as string[])
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

  #written(releases: readonly Release[], kept: readonly string[]): void {
    const { locked = [], done = [] } = Object.groupBy(releases, ({ claim }) =>
      kept.includes(claim.endpointId) ? "locked" : "done",
    )
    this.#claims.keepReleases(locked, true)
    if (locked.length > 0) this.#lockedReleases.retry()
    else this.#lockedReleases.settled()
    for (const { written } of done) written()
  }

  async #recount(): Promise<void> {
    const { worker } = this.#lease
    const [row] = await this.#database.run(RECOUNT, [worker])
    if (worker !== this.#lease.worker || row!.at_epoch === null) return
    this.#epoch = row!.at_epoch as number
    this.#resultLost = false
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

function toTimes(row: Row, granted: readonly LaneClaim[]): LaneTime[] {
  const ours = new Set(granted.map(({ endpointId }) => endpointId))
  return (row.told as string[]).map((endpointId, i) => {
    const time = (row.told_times as (string | null)[])[i]!
    return {
      endpointId,
      appId: (row.told_apps as string[])[i]!,
      transport: (row.told_transports as string[])[i]!,
      dueAt: time === null ? null : Number(time),
      isOurs: ours.has(endpointId),
    }
  })
}
