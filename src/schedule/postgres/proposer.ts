/** An index of due lanes outside of the database, so that a claim round need not search for them. The database still grants. */

export interface Proposer {
  /** The transports whose lanes are proposed from now on. */
  serve(transports: readonly string[]): void
  propose(most: number, now: number): Promise<Proposal>
  /** Lanes are due that were neither proposed nor granted, although there was room for them. */
  missed(): void
  learn(lanes: readonly LaneTime[], now: number): void
}

export interface Proposal {
  /** Null: the index is unavailable, and `learn` will not be called. */
  readonly lanes: readonly string[] | null
  /** Lanes that are overdue by this much are granted without being proposed. */
  readonly behindMs: number
}

/** The database searches by itself. */
export const NO_PROPOSAL: Proposal = { lanes: null, behindMs: 0 }

/** When a lane is due, as the database has it. */
export interface LaneTime {
  readonly endpointId: string
  readonly appId: string
  readonly transport: string
  /** Null when it is claimed or has nothing to do. */
  readonly dueAt: number | null
  /** Just granted to this worker: no other worker can know anything newer. */
  readonly isOurs: boolean
}
