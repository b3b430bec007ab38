/** Posthorn's public API. Everything else may change. */
export type { Auth, ClientTls, OAuth2 } from "./core/auth.ts"
export { type ErrorCode, PosthornError } from "./core/errors.ts"
export type { DeadReason, Policy, PolicyInput } from "./core/policy.ts"
export { PRESETS, type PresetName } from "./core/presets.ts"
export type { DeliveryStatus } from "./core/settle.ts"
export { type ReceivedHeaders, type VerifyOptions, verifySignature } from "./core/signature.ts"
export {
  type AttemptEvent,
  type DeadEvent,
  type DeliveredEvent,
  type EventMap,
  TOPIC,
  type WebhookEvent,
} from "./observe/events.ts"
export type { PosthornOptions } from "./options.ts"
export { type Health, openPosthorn, type Posthorn } from "./posthorn.ts"
export type { Application, ApplicationInput } from "./resources/applications.ts"
export type { List, PageInput } from "./resources/core.ts"
export type { Attempt, AttemptQuery, DeadQuery, Delivery, DeliveryQuery } from "./resources/deliveries.ts"
export type { Endpoint, EndpointInput, RotateInput } from "./resources/endpoints.ts"
export type { Message, MessageInput, SendOptions, SendResult } from "./resources/messages.ts"
export type { NamedPolicy } from "./resources/policies.ts"
export type { Task } from "./resources/tasks.ts"
export type { AttemptStatus, Priority, StatusCounts, TaskAction, TaskStatus } from "./store/store.ts"
export type { EgressInput } from "./transport/egress/settings.ts"
