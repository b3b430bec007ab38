/** The lanes of this worker: claims that it holds, and releases that its next claim round writes. */
import type { LaneClaim } from "../../store/store.ts"

const AT_ONCE = 0

export interface Release {
  readonly claim: LaneClaim
  dueAt: number | null
  /** Called when the release is written, or need not be. */
  readonly written: () => void
  /** Another transaction has locked the lane's row: tried again after a delay, or with other releases. */
  isLocked: boolean
}

export class Claims {
  readonly #held = new Map<string, LaneClaim>()
  /** Held lanes that were woken, until the engine is told. */
  readonly #woken = new Map<string, LaneClaim>()
  readonly #releases = new Map<string, Release>()

  get hasReleases(): boolean {
    return this.#releases.size > 0
  }

  get hasUnlockedReleases(): boolean {
    for (const { isLocked } of this.#releases.values()) if (!isLocked) return true
    return false
  }

  /** Resolves when the release is written, or need not be. */
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

  /** The claim round that was to write them failed, or found them locked. */
  keepReleases(releases: readonly Release[], isLocked: boolean): void {
    for (const release of releases) {
      release.isLocked = isLocked
      this.#releases.set(release.claim.endpointId, release)
    }
  }

  granted(claims: readonly LaneClaim[]): void {
    for (const claim of claims) this.#held.set(claim.endpointId, claim)
  }

  /**
   * The database has these lanes as ours, possibly woken. The round used the wake up, so a release that is not written yet becomes due at
   * once. A lane that we do not know of is given back.
   */
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

  /** All claims are lost. */
  forget(): void {
    this.#held.clear()
    this.#woken.clear()
    for (const { written } of this.takeReleases()) written()
  }
}
