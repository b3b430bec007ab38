/** Signals that stop a long-running command. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

/** Resolves with the first signal; a second one ends the process at once. */
export function whenStopped(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false
    for (const [signal, code] of Object.entries(SIGNALS)) {
      process.on(signal, () => {
        if (asked) process.exit(code)
        asked = true
        resolve(signal)
      })
    }
  })
}
