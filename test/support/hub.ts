/** A hub behind an agent: a handler that logs its runs, and the outcomes that the server confirmed. */
import { onTestFinished } from "vitest"
import { type AgentClient, connectAgent } from "../../src/agent/agent.ts"
import type { AgentAnswer, AgentEvent } from "../../src/agent/event.ts"
import type { AgentOptions } from "../../src/agent/options.ts"
import { Watchers } from "./watchers.ts"

export interface HubOptions extends Pick<AgentOptions, "server" | "key"> {
  /** What its program answers. */
  readonly answer?: (n: number) => AgentAnswer | Promise<AgentAnswer>
  /** The part of each delay that it waits before it connects again. */
  readonly patience?: number
}

export class Hub {
  readonly runs: { readonly n: number; readonly messageId: string; readonly deliveryId: string }[] = []
  readonly settled = new Set<string>()
  /** Deliveries whose handler ran after the server had confirmed their outcome. */
  readonly runAgain: string[] = []
  readonly agent: AgentClient
  readonly #watchers = new Watchers()
  readonly #answer: NonNullable<HubOptions["answer"]>
  connections = 0
  /** The sentence with which it gave up. */
  refusal: string | null = null

  constructor({ answer = () => ({ status: 200 }), patience = 0.02, ...options }: HubOptions) {
    this.#answer = answer
    this.agent = connectAgent(
      {
        ...options,
        name: "hub",
        logger: "silent",
        closeTimeoutMs: 0,
        handle: (event) => this.#handle(event),
        onConnected: () => {
          this.connections++
          this.#watchers.changed()
        },
        onSettled: ({ deliveryId }) => {
          this.settled.add(deliveryId)
          this.#watchers.changed()
        },
      },
      { random: () => patience },
    )
    void this.agent.closed.then((error) => {
      this.refusal = error?.message ?? null
      this.#watchers.changed()
    })
    onTestFinished(() => this.agent.close())
  }

  #handle({ messageId, deliveryId, body }: AgentEvent) {
    const { n } = JSON.parse(Buffer.from(body).toString())
    if (this.settled.has(deliveryId)) this.runAgain.push(deliveryId)
    this.runs.push({ n, messageId, deliveryId })
    this.#watchers.changed()
    return this.#answer(n)
  }

  /** The numbers in the order of their first run. */
  get numbers(): number[] {
    return [...new Set(this.runs.map(({ n }) => n))]
  }

  until(condition: () => boolean): Promise<void> {
    return this.#watchers.until(condition)
  }
}

export function counted(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}
