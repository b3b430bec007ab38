/** Agents for tests: on a clock that the test moves, with everything that they report. */
import { onTestFinished } from "vitest"
import { type AgentClient, connectAgent } from "../../src/agent/agent.ts"
import type {
  AgentConnected,
  AgentDisconnected,
  AgentHandled,
  AgentOptions,
  AgentSettled,
} from "../../src/agent/options.ts"
import { TestClock } from "./clock.ts"
import type { FakeRelay } from "./fake-relay.ts"
import { Watchers } from "./watchers.ts"

export interface AgentReports {
  readonly connected: AgentConnected[]
  readonly disconnected: AgentDisconnected[]
  readonly handled: AgentHandled[]
  readonly settled: AgentSettled[]
}

export class AgentBench {
  readonly clock = new TestClock()
  readonly reports: AgentReports = { connected: [], disconnected: [], handled: [], settled: [] }
  readonly agent: AgentClient
  readonly #watchers = new Watchers()

  /** `random` is 1: the longest delays of full jitter. */
  constructor(relay: FakeRelay | string, options: Partial<AgentOptions> = {}, random = () => 1) {
    const keep = <N extends keyof AgentReports>(name: N) => {
      return (report: AgentReports[N][number]) => {
        ;(this.reports[name] as unknown[]).push(report)
        this.#watchers.changed()
      }
    }
    this.agent = connectAgent(
      {
        server: typeof relay === "string" ? relay : relay.url,
        key: "ph_test_key",
        name: "hub",
        logger: "silent",
        ...(options.forward === undefined ? { handle: () => "success" } : {}),
        onConnected: keep("connected"),
        onDisconnected: keep("disconnected"),
        onHandled: keep("handled"),
        onSettled: keep("settled"),
        ...options,
      },
      { clock: this.clock, random },
    )
    onTestFinished(async () => {
      const closed = this.agent.close()
      this.clock.advance(3_600_000)
      await closed
    })
  }

  /** Resolves with the n-th report of this kind, from 1. */
  async report<N extends keyof AgentReports>(name: N, n = 1): Promise<AgentReports[N][number]> {
    await this.#watchers.until(() => this.reports[name].length >= n)
    return this.reports[name][n - 1]!
  }

  /** Waits for the n-th end of a connection, and lets the time until the next try pass. */
  async reconnect(n = 1): Promise<AgentDisconnected> {
    const lost = await this.report("disconnected", n)
    this.clock.advance(lost.retryInMs!)
    return lost
  }
}

/** A handler that a test ends, event by event. */
export function heldHandler<A>() {
  const watchers = new Watchers()
  const calls: { readonly end: (answer: A) => void; readonly fail: (error: Error) => void }[] = []
  const handle = (): Promise<A> =>
    new Promise((resolve, reject) => {
      calls.push({ end: resolve, fail: reject })
      watchers.changed()
    })
  const called = async (n = 1) => {
    await watchers.until(() => calls.length >= n)
    return calls[n - 1]!
  }
  return { handle, called, calls }
}
