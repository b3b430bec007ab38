/**
 * What this worker knows of its lanes: those that it holds, and those that it gives back with its next turn.
 *
 * A wake can reach a lane while it is being given back: the turn says "yours, woken", and that has used the wake up. The giving
 * back, which is still to be written, then says that the lane is due.
 */
import type { LaneClaim } from "../../store/store.ts"

const AT_ONCE = 0

export interface Release {
  readonly claim: LaneClaim
  dueAt: number | null
  readonly written: () => void
  /** Somebody has the lane's row: it is tried again after a while, or with what else is to be written. */
  isLocked: boolean
}

export class Claims {
  readonly #held = new Map<string, LaneClaim>()
  /** Those of them that were woken, until the engine is told. */
  readonly #woken = new Map<string, LaneClaim>()
  readonly #releases = new Map<string, Release>()

  get hasReleases(): boolean {
    return this.#releases.size > 0
  }

  /** Some that nothing is known to stand in the way of. */
  get hasFreeReleases(): boolean {
    for (const { isLocked } of this.#releases.values()) if (!isLocked) return true
    return false
  }

  /** Resolves when it is written, or when nothing has to be. */
  release(claim: LaneClaim, nextDueAt: number | null): Promise<void> {
    const { endpointId, token } = claim
    if (this.#held.get(endpointId)?.token !== token) return Promise.resolve()
    this.#held.delete(endpointId)
    const dueAt = this.#woken.delete(endpointId) ? AT_ONCE : nextDueAt
    return new Promise((written) =>
      this.#releases.set(endpointId, { claim, dueAt, written, isLocked: false }),
    )
  }

  takeReleases(): Release[] {
    const taken = [...this.#releases.values()]
    this.#releases.clear()
    return taken
  }

  /** The turn that was to write them failed, or found them locked. */
  keepReleases(releases: readonly Release[], isLocked: boolean): void {
    for (const release of releases) {
      release.isLocked = isLocked
      this.#releases.set(release.claim.endpointId, release)
    }
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
        this.#releases.set(endpointId, { claim, dueAt: AT_ONCE, written: () => {}, isLocked: false })
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
