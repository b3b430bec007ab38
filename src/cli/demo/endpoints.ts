/** The demo's data: four events of one invoice, and nine endpoints with their receivers. */
import type { EndpointInput, MessageInput, PolicyInput } from "../../index.ts"

export const APP = "acme"

/** Four attempts in four seconds, with a timeout of one, so that the demo takes ten. */
const SCHEDULE: PolicyInput = { delays: [0.5, 1, 2], maxAttempts: 4, timeout: 1, breaker: false }

/** Requests a second, slow enough to be seen. */
export const RAMP = 1

export const EVENTS = ["created", "sent", "paid", "archived"] as const

/** The n-th event (1 to 4) of the invoice. */
export function message(n: number): MessageInput {
  const step = EVENTS[n - 1]!
  return {
    eventType: `invoice.${step}`,
    payload: { n, invoice: "INV-2041", step, total: 12_900, currency: "EUR" },
    idempotencyKey: `INV-2041-${step}`,
  }
}

/** The state of a receiver at a request. */
export interface Seen {
  /** The number of the event, from 1. */
  readonly n: number
  /** Requests for this event at this endpoint, including this one. */
  readonly tries: number
  /** Requests for any event at this endpoint. */
  readonly requests: number
  readonly mended: boolean
}

/** `hang` takes the event and never responds; `drop` closes the connection. */
export type ReceiverResponse =
  | { readonly status: number; readonly body: string; readonly retryAfterSeconds?: number }
  | "hang"
  | "drop"

export interface DemoEndpoint {
  readonly uid: string
  /** The behaviour of its receiver, in a few words. */
  readonly story: string
  readonly endpoint: Omit<EndpointInput, "url" | "uid">
  answer(seen: Seen): ReceiverResponse
}

const OK: ReceiverResponse = { status: 200, body: "thank you" }

export const ORDERED = "ledger"
/** Its request for the last event hangs, and is in flight when the engine is killed. */
export const SLEEPY = "sleepy"
export const MOVED = "moved"

export const ENDPOINTS: readonly DemoEndpoint[] = [
  {
    uid: "steady",
    story: "is always fine",
    endpoint: { retry: SCHEDULE },
    answer: () => OK,
  },
  {
    uid: "flaky",
    story: "500 three times, then fine",
    endpoint: { retry: SCHEDULE, eventTypes: ["invoice.created", "invoice.paid"] },
    answer: ({ tries }) => (tries <= 3 ? { status: 500, body: "upstream on fire" } : OK),
  },
  {
    uid: SLEEPY,
    story: "takes it, forgets to answer",
    endpoint: { retry: SCHEDULE, eventTypes: ["invoice.created", "invoice.archived"] },
    answer: ({ tries }) => (tries === 1 ? "hang" : OK),
  },
  {
    uid: "busy",
    story: "429, Retry-After: 2",
    endpoint: { retry: SCHEDULE },
    answer: ({ requests }) =>
      requests === 2 ? { status: 429, body: "slow down", retryAfterSeconds: 2 } : OK,
  },
  {
    uid: ORDERED,
    story: "ordered; #1 fails twice",
    // The second delay spans the kill: the order must survive it.
    endpoint: { retry: { ...SCHEDULE, delays: [0.8, 2] }, ordered: true },
    answer: ({ n, tries }) => (n === 1 && tries <= 2 ? { status: 502, body: "bad gateway" } : OK),
  },
  {
    uid: "down",
    story: "drops every connection",
    endpoint: { retry: SCHEDULE },
    answer: ({ mended }) => (mended ? OK : "drop"),
  },
  {
    uid: "outage",
    story: "down, then back",
    // The breaker is open while the engine is killed: its state must survive it.
    endpoint: { retry: { ...SCHEDULE, breaker: { failures: 3, open: 3, ramp: RAMP } } },
    answer: ({ requests }) => (requests <= 3 ? { status: 503, body: "out of service" } : OK),
  },
  {
    uid: "strict",
    story: "400; its policy retries 5xx",
    endpoint: { retry: { ...SCHEDULE, retryable: "5xx" }, eventTypes: ["invoice.sent"] },
    answer: ({ mended }) => (mended ? OK : { status: 400, body: "unknown field" }),
  },
  {
    uid: MOVED,
    story: "410 gone: endpoint disabled",
    endpoint: { retry: SCHEDULE, eventTypes: ["invoice.archived"] },
    answer: ({ mended }) => (mended ? OK : { status: 410, body: "we moved" }),
  },
]
