/** Writes a registry in the format that a scrape accepts: OpenMetrics 1.0, or Prometheus' text format 0.0.4. */
import { type MetricObject, Registry } from "@prometheus-io/client"

export interface Exposition {
  readonly contentType: string
  readonly text: string
}

export async function expose(registry: Registry, accept: string | undefined): Promise<Exposition> {
  const chosen = acceptsOpenMetrics(accept) ? openMetricsCopy(registry) : registry
  return { contentType: chosen.contentType, text: await chosen.metrics() }
}

/** Prometheus asks for several formats, the best first. */
function acceptsOpenMetrics(accept = ""): boolean {
  return accept
    .split(",")
    .map((range) => range.split(";").map((part) => part.trim().toLowerCase()))
    .some(([type, ...params]) => type === "application/openmetrics-text" && !params.includes("q=0"))
}

/** As the client writes OpenMetrics, it takes `_total` off the names of counters, for good. So it gets objects with names of their own. */
function openMetricsCopy(registry: Registry): Registry {
  const copy = new Registry(Registry.OPENMETRICS_CONTENT_TYPE)
  for (const metric of registry.getMetricsAsArray()) copy.registerMetric(withOwnName(metric) as never)
  return copy
}

function withOwnName(metric: MetricObject): MetricObject {
  return Object.create(metric, { name: { value: metric.name, writable: true } })
}
