/** Waits for conditions on a state that says when it has changed. */
export class Watchers {
  readonly #checks = new Set<() => void>()

  /** Resolves when the condition holds: now, or after a change. */
  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!condition()) return
        this.#checks.delete(check)
        resolve()
      }
      this.#checks.add(check)
      check()
    })
  }

  changed(): void {
    for (const check of this.#checks) check()
  }
}
