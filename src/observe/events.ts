/** A typed bus for what happens to deliveries. Everything is also published on the topic `gateway:webhooks`. */
import { invalid } from "../core/errors.ts"
import type { DeadReason } from "../core/policy.ts"
import type { Logger } from "./log.ts"

export const TOPIC = "gateway:webhooks"

interface DeliveryEvent {
  readonly webhook_delivery_id: string
  /** The endpoint. */
  readonly webhook_id: string
  readonly app_id: string
  readonly message_id: string
  readonly session_id: string | null
  readonly event_type: string
  readonly attempt_count: number
  /** Milliseconds since 1970. */
  readonly at: number
}

/** Seed 000's WebhookDLQEvent. */
export interface DeadEvent extends DeliveryEvent {
  readonly type: "delivery.dead"
  readonly reason: DeadReason
  readonly last_error: string | null
}

export interface DeliveredEvent extends DeliveryEvent {
  readonly type: "delivery.delivered"
  readonly response_status: number | null
}

export interface AttemptEvent extends DeliveryEvent {
  readonly type: "delivery.attempt"
  readonly attempt_id: string
  readonly success: boolean
  readonly response_status: number | null
  readonly error: string | null
  readonly duration_ms: number
  /** Null when no further attempt follows. */
  readonly next_retry_at: number | null
  /** The answer was a 410 that disabled the endpoint. */
  readonly endpoint_disabled: boolean
}

export type WebhookEvent = DeadEvent | DeliveredEvent | AttemptEvent

export interface EventMap {
  "delivery.dead": DeadEvent
  "delivery.delivered": DeliveredEvent
  "delivery.attempt": AttemptEvent
  [TOPIC]: WebhookEvent
}

const NAMES: readonly (keyof EventMap)[] = ["delivery.dead", "delivery.delivered", "delivery.attempt", TOPIC]

export type Listener<E> = (event: E) => void

export class EventBus {
  readonly #listeners = new Map<keyof EventMap, Set<Listener<never>>>()
  readonly #logger: Logger
  readonly #published: Listener<WebhookEvent>[] = []
  /** Told when somebody here begins to listen. */
  onListening: () => void = () => {}

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Returns a function that ends the subscription. */
  on<N extends keyof EventMap>(name: N, listener: Listener<EventMap[N]>): () => void {
    if (!NAMES.includes(name)) throw invalid("event", `must be one of ${NAMES.join(", ")}`)
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners)
    listeners.add(listener as Listener<never>)
    this.onListening()
    return () => listeners.delete(listener as Listener<never>)
  }

  get hasListeners(): boolean {
    return [...this.#listeners.values()].some(({ size }) => size > 0)
  }

  /** Of every event of this process, and of no other. */
  onPublished(listener: Listener<WebhookEvent>): void {
    this.#published.push(listener)
  }

  publish(event: WebhookEvent): void {
    this.tell(event)
    for (const listener of this.#published) listener(event)
  }

  /** To the listeners of this process only. */
  tell(event: WebhookEvent): void {
    this.#tell(event.type, event)
    this.#tell(TOPIC, event)
  }

  /** A listener's mistake is its own: it is logged, and neither the engine nor another listener notices. */
  #tell(name: keyof EventMap, event: WebhookEvent): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        const result: unknown = (listener as Listener<WebhookEvent>)(event)
        if (result instanceof Promise) result.catch((error) => this.#complain(name, error))
      } catch (error) {
        this.#complain(name, error)
      }
    }
  }

  #complain(name: string, err: unknown): void {
    this.#logger.error({ err, event: name }, "An event listener threw")
  }
}
