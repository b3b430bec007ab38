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

/** How things stand with a lane. */
export interface LaneTime {
  readonly endpointId: string
  readonly appId: string
  /** Null when it is claimed or has nothing to do. */
  readonly dueAt: number | null
  /** It has just been granted to this worker: nobody else can have anything to say about it. */
  readonly isOurs: boolean
}
