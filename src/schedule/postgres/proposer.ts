/** Somebody who knows which lanes are due, so that the database need not look for them, and who is told how things stand. */

export interface Proposer {
  propose(most: number, now: number): Promise<Proposal>
  /** Lanes are due that were not taken although there was room for them: what was proposed was not all. */
  missed(): void
  learn(lanes: readonly LaneTime[], now: number): void
}

export interface Proposal {
  /** Null: this time nothing is known, and nothing can be learned. */
  readonly lanes: readonly string[] | null
  /** Lanes that have been due for so long are taken without being proposed. */
  readonly behindMs: number
}

/** The database finds them by itself. */
export const NO_PROPOSAL: Proposal = { lanes: null, behindMs: 0 }

/** When a lane is due, as the database has it; null when it is claimed or has nothing to do. */
export interface LaneTime {
  readonly endpointId: string
  readonly appId: string
  readonly dueAt: number | null
}
