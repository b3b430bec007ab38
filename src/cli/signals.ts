/** Signals that stop a long-running command. */
const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
type Signal = keyof typeof CODES

/** Resolves with the first signal; a second one ends the process at once. Without SIGHUP, `nohup` can keep the command alive. */
export function whenStopped(signals: readonly Signal[] = ["SIGINT", "SIGTERM"]): Promise<Signal> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of signals) {
      process.on(signal, () => {
        if (asked) process.exit(CODES[signal])
        asked = true
        resolve(signal)
      })
    }
  })
}
