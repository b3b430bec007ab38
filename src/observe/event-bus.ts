/** The listeners of `posthorn.on`. Events of deliveries are also published on the topic `gateway:webhooks`. */
import { invalid } from "../core/errors.ts"
import type { EventSubscriber, InternalEvent } from "./event-stream.ts"
import type { Logger } from "./log.ts"
import { EVENT_NAMES, type EventMap, type PublicEvent, TOPIC, toPublicEvents } from "./public-events.ts"

export type Listener<E> = (event: E) => void

export class EventBus implements EventSubscriber {
  readonly #listeners = new Map<keyof EventMap, Set<Listener<never>>>()
  readonly #every = new Set<Listener<PublicEvent>>()
  readonly #logger: Logger
  readonly #watchers: (() => void)[] = []
  #size = 0

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Returns a function that ends the subscription. */
  on<N extends keyof EventMap>(name: N, listener: Listener<EventMap[N]>): () => void {
    if (!EVENT_NAMES.includes(name)) throw invalid("event", `must be one of ${EVENT_NAMES.join(", ")}`)
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners)
    if (!listeners.has(listener as Listener<never>)) this.#size++
    listeners.add(listener as Listener<never>)
    for (const watcher of this.#watchers) watcher()
    return () => {
      if (listeners.delete(listener as Listener<never>)) this.#size--
    }
  }

  /** Gets every event once, under any name. Returns a function that ends the subscription. */
  onEvery(listener: Listener<PublicEvent>): () => void {
    this.#every.add(listener)
    this.#size++
    for (const watcher of this.#watchers) watcher()
    return () => {
      if (this.#every.delete(listener)) this.#size--
    }
  }

  /** Calls it for each listener that is added. */
  whenListening(watcher: () => void): void {
    this.#watchers.push(watcher)
  }

  get hasListeners(): boolean {
    return this.#size > 0
  }

  handle(event: InternalEvent): void {
    if (this.#size > 0) for (const one of toPublicEvents(event)) this.publish(one)
  }

  /** Also for events of other processes. */
  publish(event: PublicEvent): void {
    this.#tell(event.type, event, this.#listeners.get(event.type))
    if ("webhook_delivery_id" in event) this.#tell(TOPIC, event, this.#listeners.get(TOPIC))
    this.#tell(event.type, event, this.#every)
  }

  /** A listener that throws or rejects is logged. It stops neither the engine nor another listener. */
  #tell(name: keyof EventMap, event: PublicEvent, listeners: Iterable<Listener<never>> = []): void {
    for (const listener of listeners) {
      try {
        const result: unknown = (listener as Listener<PublicEvent>)(event)
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
