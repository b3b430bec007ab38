/** The metrics of an open Posthorn: one registry, fed by measurements and events. */
import { Gauge, Registry } from "@prometheus-io/client"
import type { EventSubscriber } from "../event-stream.ts"
import type { Instruments } from "../instruments.ts"
import { DeliveryMetrics } from "./deliveries.ts"
import { EngineMetrics } from "./engine.ts"
import type { RelayMetrics } from "./relay.ts"
import { StoreWideMetrics } from "./store-wide.ts"

export class Metrics {
  readonly registry: Registry
  readonly instruments: Instruments
  readonly subscriber: EventSubscriber
  readonly storeWide: StoreWideMetrics
  readonly relay: RelayMetrics

  constructor(version: string) {
    // The client allows exemplars only on a registry of this type. The type is changed below: most readers expect the text format.
    const registry: Registry = new Registry(Registry.OPENMETRICS_CONTENT_TYPE)
    this.registry = registry
    const engine = new EngineMetrics(registry)
    this.instruments = engine
    this.relay = engine.relay
    this.subscriber = new DeliveryMetrics(registry)
    this.storeWide = new StoreWideMetrics(registry)
    new Gauge({
      name: "posthorn_build_info",
      help: "1, with the versions of Posthorn and Node",
      labelNames: ["version", "node"],
      registers: [registry],
    }).set({ version, node: process.versions.node }, 1)
    registry.setContentType(Registry.PROMETHEUS_CONTENT_TYPE)
  }
}
