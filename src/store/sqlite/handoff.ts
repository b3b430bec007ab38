/** What the store's thread says of an accepted message: beside the contract's answer, which deliveries it claimed for open lanes. */
import type { Accepted, LaneWake } from "../store.ts"

export interface LaneOnThread extends LaneWake {
  readonly handed?: { readonly seq: number; readonly id: string; readonly token: number } | undefined
}

export interface AcceptedOnThread extends Omit<Accepted, "lanes"> {
  readonly lanes: readonly LaneOnThread[]
}
