/** Posthorn's public API. Everything else may change. */

export { type AgentClient, connectAgent } from "./agent/agent.ts"
export type { AgentAnswer, AgentEvent, AgentHandler } from "./agent/event.ts"
export type {
  AgentConnected,
  AgentDisconnected,
  AgentHandled,
  AgentOptions,
  AgentSettled,
} from "./agent/options.ts"
export type { AgentOutcome } from "./agent/outcome.ts"
export type { AlertRule } from "./alerts/alert-rules.ts"
export type { Alert, AlertEvaluation, AlertQuery, AlertState } from "./alerts/alerts.ts"
export type { AlertChannel, AlertChannelInput } from "./alerts/channels/channel.ts"
export type { NotificationResult } from "./alerts/channels/explain.ts"
export type { Notification, NotificationKind, NotificationSubject, Severity } from "./alerts/notification.ts"
export type { AlertRuleInput, RuleId } from "./alerts/rules.ts"
export type { AlertSettings } from "./alerts/settings.ts"
export type { Silence, SilenceInput } from "./alerts/silences.ts"
export type { AlertChannelKind } from "./core/alert-channel-kinds.ts"
export type { AttemptTiming } from "./core/attempt-timing.ts"
export type { AttemptWindow } from "./core/attempt-window.ts"
export type { Auth, ClientTls, OAuth2 } from "./core/auth.ts"
export { type Random, retryDelay } from "./core/backoff.ts"
export { type ErrorCode, PosthornError } from "./core/errors.ts"
export type { FailureCause } from "./core/failure-causes.ts"
export type { HealthState } from "./core/health.ts"
export type { InboundRequest } from "./core/inbound-request.ts"
export type { InboundResult, RefusalReason } from "./core/inbound-results.ts"
export type { KeyScope } from "./core/key-scope.ts"
export { isRetryable } from "./core/outcome.ts"
export { parsePolicy } from "./core/parse-policy.ts"
export type { VerificationInput } from "./core/parse-verification.ts"
export type { DeadReason, Policy, PolicyInput } from "./core/policy.ts"
export { PRESETS, type PresetName } from "./core/presets.ts"
export type { Place } from "./core/received-request.ts"
export type { DeliveryStatus } from "./core/settle.ts"
export { type ReceivedHeaders, type VerifyOptions, verifySignature } from "./core/signature.ts"
export type { TaskType } from "./core/task-types.ts"
export type { Verification } from "./core/verification-schemes.ts"
export type { WaitReason } from "./core/wait.ts"
export {
  type AttemptEvent,
  type DeadEvent,
  type DeliveredEvent,
  type EventMap,
  type GapEvent,
  TOPIC,
  type WebhookEvent,
} from "./observe/public-events.ts"
export type { AlertsInput, PosthornOptions } from "./options.ts"
export { type Health, openPosthorn, type Posthorn } from "./posthorn.ts"
export type { Agent, AgentQuery } from "./resources/agents.ts"
export type { Application, ApplicationInput, ApplicationQuery } from "./resources/applications.ts"
export type { Attempt, AttemptQuery } from "./resources/attempts.ts"
export type { Change, ChangeQuery, Changer } from "./resources/changes.ts"
export type {
  AttemptYield,
  Cost,
  CostGroup,
  CostGrouping,
  CostQuery,
  CostReport,
  Expense,
  WhatIf,
} from "./resources/cost.ts"
export type { DeadGroup, DeadQuery } from "./resources/dead-letters.ts"
export type { Delivery, DeliveryQuery, RescheduleInput } from "./resources/deliveries.ts"
export type {
  Enabled,
  EnableInput,
  EnablePreview,
  Endpoint,
  EndpointHealth,
  EndpointInput,
  EndpointSeries,
  HealthQuery,
  RotateInput,
  SeriesHour,
} from "./resources/endpoints.ts"
export type { EventType, EventTypeInput, EventTypeQuery } from "./resources/event-types.ts"
export type { Capability, Key, KeyInput, KeyQuery, NewKey, RevokeInput } from "./resources/keys.ts"
export type { Lane, LaneQuery } from "./resources/lanes.ts"
export type {
  BatchOptions,
  Message,
  MessageInput,
  MessageQuery,
  SendOptions,
  SendResult,
  TraceOptions,
} from "./resources/messages.ts"
export type { List, Listing, Order, PageInput, WholeListing } from "./resources/paging.ts"
export type { NamedPolicy, PolicyPreview } from "./resources/policies.ts"
export type { ContentQuery, ResponseClass, SpanQuery } from "./resources/query.ts"
export type { ReplayQuery } from "./resources/replays.ts"
export type { WaitingQuery } from "./resources/send-now.ts"
export type { Task, TaskQuery } from "./resources/tasks.ts"
export type { UsageQuery } from "./resources/usage.ts"
export type { Worker } from "./resources/workers.ts"
export type {
  Deduplication,
  HandshakeInput,
  Receipt,
  ReceiveInput,
  RefusedRequest,
  Source,
  SourceActivity,
  SourceInput,
  SourceRotateInput,
} from "./sources/sources.ts"
export type {
  AttemptCounts,
  AttemptStatus,
  Priority,
  StatusCodeCount,
  StatusCounts,
  TaskAction,
  TaskStatus,
} from "./store/store.ts"
export type { Tenant } from "./tenant.ts"
export type { EgressInput } from "./transport/egress/settings.ts"
