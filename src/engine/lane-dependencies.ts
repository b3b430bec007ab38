/** The engine's parts that every lane run works with. */
import type { Random } from "../core/backoff.ts"
import type { Clock } from "../core/clock.ts"
import type { Ids } from "../core/ids.ts"
import type { Policy } from "../core/policy.ts"
import type { EventSink } from "../observe/event-stream.ts"
import type { Instruments } from "../observe/instruments.ts"
import type { Logger } from "../observe/log.ts"
import type { Tracing } from "../observe/tracing.ts"
import type { Endpoint } from "../store/store.ts"
import type { Transport } from "../transport/transport.ts"
import type { Load } from "./load.ts"
import type { OAuthTokens } from "./oauth.ts"
import type { OwnOutage } from "./own-outage.ts"
import type { PollBudget } from "./poll-budget.ts"
import type { SettlementQueue } from "./settlement-queue.ts"
import type { Slots } from "./slots.ts"
import type { Target } from "./target.ts"
import type { Uptime } from "./uptime.ts"

export interface LaneDependencies {
  readonly transport: Transport
  readonly clock: Clock
  readonly random: Random
  /** The delay before a call that the store failed is repeated. */
  storeRetryMs(): number
  readonly ids: Ids
  readonly logger: Logger
  readonly tokens: OAuthTokens
  readonly settlements: SettlementQueue
  readonly events: EventSink
  readonly instruments: Instruments
  readonly tracing: Tracing
  readonly slots: Slots
  readonly load: Load
  readonly budget: PollBudget
  readonly uptime: Uptime
  readonly outage: OwnOutage
  readonly defaultPolicy: Policy
  target(endpoint: Endpoint): Target
  stopping(): boolean
  /** Whether this process's lease on its lanes still holds, as far as its clock can tell. */
  holds(): boolean
  /** Whether one more lane may be kept open with nothing to do. */
  mayRest(): boolean
  /** Whether due lanes wait because the working lanes take all places. */
  othersWait(): boolean
}
