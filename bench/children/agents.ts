/** Agents in a process of their own: one that forwards to the receiver, or many that are idle. The settings are the first argument, as JSON. */
import { connectAgent } from "../../src/agent/agent.ts"

export interface AgentSettings {
  readonly server: string
  readonly key: string
  readonly forward: string
  /** One agent for each name. */
  readonly names: readonly string[]
}

const { server, key, forward, names } = JSON.parse(process.argv[2]!) as AgentSettings

await Promise.all(
  names.map(async (name) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    connectAgent({ server, key, forward, name, onConnected: () => resolve() })
    await promise
  }),
)
process.send!("connected")
