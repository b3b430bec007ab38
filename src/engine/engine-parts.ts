/** The engine's dependencies and options. */
import type { Random } from "../core/backoff.ts"
import type { Clock } from "../core/clock.ts"
import type { Ids } from "../core/ids.ts"
import type { OutageSettings } from "../core/own-outage.ts"
import type { Policy } from "../core/policy.ts"
import type { Vault } from "../core/vault.ts"
import type { EventSink } from "../observe/event-stream.ts"
import type { Instruments } from "../observe/instruments.ts"
import type { Logger } from "../observe/log.ts"
import type { Tracing } from "../observe/tracing.ts"
import type { Schedule } from "../schedule/schedule.ts"
import type { Endpoint, Store } from "../store/store.ts"
import type { Transport } from "../transport/transport.ts"

export interface EngineOptions {
  readonly pollIntervalMs: number
  readonly maxPerPoll: number | null
  readonly maintenanceIntervalMs: number
  readonly maxInFlight: number
  readonly laneConcurrency: number
  readonly userAgent: string
  /** Whether receivers get the trace context. */
  readonly sendTraceparent: boolean
  /** When our own network is taken to be down; null: never. */
  readonly ownOutage: OutageSettings | null
}

export interface EngineParts {
  readonly store: Store
  readonly schedule: Schedule
  readonly transport: Transport
  /** The kinds of lanes that the transport can serve. */
  readonly kinds: readonly string[]
  readonly clock: Clock
  readonly random: Random
  readonly ids: Ids
  readonly vault: Vault
  readonly events: EventSink
  readonly instruments: Instruments
  readonly tracing: Tracing
  readonly logger: Logger
  readonly defaultPolicy: Policy
  /** Whether the agent that the endpoint names is connected to no process. */
  isAgentAbsent(endpoint: Endpoint): Promise<boolean>
  /** Tells this engine and the other processes of a change that a task made. */
  endpointChanged(endpointId: string, appId: string): void
}
