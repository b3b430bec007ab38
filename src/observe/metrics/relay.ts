/** Metrics of the agents that are connected to this process. No label names an agent. */
import { Gauge, type Registry } from "@prometheus-io/client"
import {
  ACKNOWLEDGEMENT_RESULTS,
  type AcknowledgementResult,
  CONNECTION_RESULTS,
  type ConnectionResult,
} from "../../core/relay-results.ts"
import { type Cell, cellsBy, countedBy } from "./cells.ts"

export interface AgentCounts {
  readonly agents: number
  readonly inFlight: number
}

export class RelayMetrics {
  readonly #connections: { readonly [result in ConnectionResult]: Cell }
  readonly #acknowledgements: { readonly [result in AcknowledgementResult]: Cell }
  #counts: () => AgentCounts = () => ({ agents: 0, inFlight: 0 })

  constructor(registry: Registry) {
    const counts = () => this.#counts()
    const gauge = (name: string, help: string, read: (counts: AgentCounts) => number) =>
      new Gauge({
        name,
        help,
        registers: [registry],
        collect() {
          this.set(read(counts()))
        },
      })
    gauge("posthorn_relay_agents", "Agents that are connected to this process", ({ agents }) => agents)
    gauge(
      "posthorn_relay_events_in_flight",
      "Events that this process has sent to its agents and that are not acknowledged",
      ({ inFlight }) => inFlight,
    )
    const connections = countedBy(
      registry,
      "posthorn_relay_connections_total",
      "Connections of agents: accepted, refused, and closed with the reason",
      { result: CONNECTION_RESULTS },
    )
    this.#connections = cellsBy(CONNECTION_RESULTS, (result) => connections({ result }))
    const acknowledgements = countedBy(
      registry,
      "posthorn_relay_acknowledgements_total",
      "Acknowledgements of agents. Those that came too late to count are late",
      { result: ACKNOWLEDGEMENT_RESULTS },
    )
    this.#acknowledgements = cellsBy(ACKNOWLEDGEMENT_RESULTS, (result) => acknowledgements({ result }))
  }

  watch(counts: () => AgentCounts): void {
    this.#counts = counts
  }

  connection(result: ConnectionResult): void {
    this.#connections[result].value++
  }

  acknowledgement(result: AcknowledgementResult): void {
    this.#acknowledgements[result].value++
  }
}
