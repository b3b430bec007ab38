/**
 * What this worker knows of its lanes: those that it holds, and those that it gives back with its next turn.
 *
 * A wake can reach a lane while it is being given back: the turn says "yours, woken", and that has used the wake up. The giving
 * back, which is still to be written, then says that the lane is due.
 */
import type { LaneClaim } from "../schedule.ts"

const AT_ONCE = 0

export interface Release {
  readonly claim: LaneClaim
  dueAt: number | null
  readonly written: () => void
}

export class Claims {
  readonly #held = new Map<string, LaneClaim>()
  /** Those of them that were woken, until the engine is told. */
  readonly #woken = new Map<string, LaneClaim>()
  readonly #releases = new Map<string, Release>()

  get hasReleases(): boolean {
    return this.#releases.size > 0
  }

  /** Resolves when it is written, or when nothing has to be. */
  release(claim: LaneClaim, nextDueAt: number | null): Promise<void> {
    const { endpointId, token } = claim
    if (this.#held.get(endpointId)?.token !== token) return Promise.resolve()
    this.#held.delete(endpointId)
    const dueAt = this.#woken.delete(endpointId) ? AT_ONCE : nextDueAt
    return new Promise((written) => this.#releases.set(endpointId, { claim, dueAt, written }))
  }

  takeReleases(): Release[] {
    const taken = [...this.#releases.values()]
    this.#releases.clear()
    return taken
  }

  /** The turn that was to write them failed. */
  keepReleases(releases: readonly Release[]): void {
    for (const release of releases) this.#releases.set(release.claim.endpointId, release)
  }

  granted(claims: readonly LaneClaim[]): void {
    for (const claim of claims) this.#held.set(claim.endpointId, claim)
  }

  /** The database says that we have these, and that they may have been woken. What we do not know of is given back. */
  woken(claims: readonly LaneClaim[]): void {
    for (const claim of claims) {
      const { endpointId, token } = claim
      const release = this.#releases.get(endpointId)
      if (this.#held.get(endpointId)?.token === token) {
        this.#woken.set(endpointId, claim)
      } else if (release?.claim.token === token) {
        release.dueAt = AT_ONCE
      } else {
        release?.written()
        this.#releases.set(endpointId, { claim, dueAt: AT_ONCE, written: () => {} })
      }
    }
  }

  takeWoken(): LaneClaim[] {
    const taken = [...this.#woken.values()]
    this.#woken.clear()
    return taken
  }

  /** None of them stands any more. */
  forget(): void {
    this.#held.clear()
    this.#woken.clear()
    for (const { written } of this.takeReleases()) written()
  }
}
