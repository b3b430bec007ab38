/** The engine that serves agents: that of the process, or one of their own, started for the first agent of a process that does not deliver. */
import type { Engine } from "../engine/engine.ts"

export class AgentEngine {
  readonly #ofProcess: Engine | null
  readonly #make: () => Promise<Engine>
  #starting: Promise<Engine> | null = null
  #own: Engine | null = null
  #isStopped = false

  constructor(ofProcess: Engine | null, make: () => Promise<Engine>) {
    this.#ofProcess = ofProcess
    this.#make = make
  }

  /** Null: no agent has come, and the process does not deliver. */
  get current(): Engine | null {
    return this.#ofProcess ?? this.#own
  }

  /** The next call tries again after a failure. */
  async start(): Promise<Engine> {
    if (this.current !== null) return this.current
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null
    })
    return this.#starting
  }

  async #start(): Promise<Engine> {
    const engine = await this.#make()
    try {
      await engine.start()
    } catch (error) {
      engine.abandon()
      throw error
    }
    this.#own = engine
    if (this.#isStopped) await engine.stop(0)
    return engine
  }

  /** Stops the agents' own engine. */
  async stop(deadlineMs: number): Promise<void> {
    this.#isStopped = true
    await this.#starting?.catch(() => {})
    await this.#own?.stop(deadlineMs)
  }

  abandon(): void {
    this.#isStopped = true
    this.#own?.abandon()
  }
}
