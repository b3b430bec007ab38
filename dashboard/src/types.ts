/** The types of the API's responses, from the schemas that the server validates them with. */

import type { Static, TSchema } from "../../src/api/schema.ts"
import type { AgentOut } from "../../src/api/schemas/agent.ts"
import type { AlertOut, AlertRuleOut, SilenceOut } from "../../src/api/schemas/alert.ts"
import type { AlertChannelOut } from "../../src/api/schemas/alert-channel.ts"
import type { ApplicationOut } from "../../src/api/schemas/application.ts"
import type { CostReportOut } from "../../src/api/schemas/cost.ts"
import type {
  DeadGroupOut,
  DeliveryDetailOut,
  DeliveryOut,
  LaneOut,
  TaskOut,
} from "../../src/api/schemas/delivery.ts"
import type { EnablePreviewOut, EndpointOut, MessageEndpointOut } from "../../src/api/schemas/endpoint.ts"
import type { EndpointHealthOut, EndpointSeriesOut } from "../../src/api/schemas/endpoint-health.ts"
import type { EventTypeOut } from "../../src/api/schemas/event-type.ts"
import type { KeyOut, NewKeyOut } from "../../src/api/schemas/key.ts"
import type { AttemptOut, MessageOut } from "../../src/api/schemas/message.ts"
import type { OverviewOut } from "../../src/api/schemas/overview.ts"
import type { NamedPolicyOut, PreviewOut } from "../../src/api/schemas/policy.ts"
import type { SessionOut } from "../../src/api/schemas/session.ts"
import type { SourceActivityOut, SourceOut } from "../../src/api/schemas/source.ts"

/** As JSON carries it: dates are texts. */
type Json<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Json<Item>[]
    : T extends object
      ? { readonly [K in keyof T]: Json<T[K]> }
      : T
type Answer<S extends TSchema> = Json<Static<S>>

export type Agent = Answer<typeof AgentOut>
export type Alert = Answer<typeof AlertOut>
export type AlertChannel = Answer<typeof AlertChannelOut>
export type AlertRule = Answer<typeof AlertRuleOut>
export type Application = Answer<typeof ApplicationOut>
export type Attempt = Answer<typeof AttemptOut>
export type CostReport = Answer<typeof CostReportOut>
export type DeadGroup = Answer<typeof DeadGroupOut>
export type Delivery = Answer<typeof DeliveryOut>
export type DeliveryDetail = Answer<typeof DeliveryDetailOut>
export type EnablePreview = Answer<typeof EnablePreviewOut>
export type Endpoint = Answer<typeof EndpointOut>
export type EndpointHealth = Answer<typeof EndpointHealthOut>
export type EndpointSeries = Answer<typeof EndpointSeriesOut>
export type EventType = Answer<typeof EventTypeOut>
export type Key = Answer<typeof KeyOut>
export type Lane = Answer<typeof LaneOut>
export type Message = Answer<typeof MessageOut>
export type MessageEndpoint = Answer<typeof MessageEndpointOut>
export type NewKey = Answer<typeof NewKeyOut>
export type NamedPolicy = Answer<typeof NamedPolicyOut>
export type Overview = Answer<typeof OverviewOut>
export type PolicyPreview = Answer<typeof PreviewOut>
export type BrowserSession = Answer<typeof SessionOut>
export type Silence = Answer<typeof SilenceOut>
export type Source = Answer<typeof SourceOut>
export type SourceActivity = Answer<typeof SourceActivityOut>
export type Task = Answer<typeof TaskOut>
