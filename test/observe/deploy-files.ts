/** The files in `deploy/` as data: rules, the dashboard's panels, and the queries in them. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parse } from "yaml"

export const ROOT = fileURLToPath(new URL("../..", import.meta.url))
export const DEPLOY = join(ROOT, "deploy")
export const RULE_FILES = ["posthorn-recording.yml", "posthorn-alerts.yml"].map((name) =>
  join(DEPLOY, "prometheus", name),
)

export interface Rule {
  readonly record?: string
  readonly alert?: string
  readonly expr: string
  readonly labels?: { readonly [name: string]: string }
  readonly annotations?: { readonly [name: string]: string }
}

export interface Target {
  readonly expr: string
  readonly datasource: unknown
  readonly refId: string
}

export interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly datasource?: unknown
  readonly targets?: readonly Target[]
}

export interface Dashboard {
  readonly id: null
  readonly uid: string
  readonly schemaVersion: number
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] }
}

export const dashboard: Dashboard = JSON.parse(
  readFileSync(join(DEPLOY, "grafana/dashboards/posthorn.json"), "utf8"),
)

export const rules: readonly Rule[] = RULE_FILES.flatMap((file) =>
  parse(readFileSync(file, "utf8")).groups.flatMap(({ rules }: { rules: Rule[] }) => rules),
)

export const queries: readonly { readonly panel: string; readonly expr: string }[] = dashboard.panels.flatMap(
  ({ title, targets = [] }) => targets.map(({ expr, refId }) => ({ panel: `${title} ${refId}`, expr })),
)

/** A panel's query as Grafana sends it for all jobs, with the given ranges. */
export function fillIn(expr: string, rateInterval: string, range: string): string {
  return expr
    .replaceAll("$job", ".+")
    .replaceAll("$__rate_interval", rateInterval)
    .replaceAll("$__range", range)
}

/**
 * The operands of an alert's expression, without their thresholds: they have a value on a healthy system too, while the whole
 * expression has one only when the alert fires.
 */
export function operandsOf(expr: string): string[] {
  return expr
    .split(/\b(?:and|or|unless)\b(?: (?:on|ignoring) \([^)]*\))?/)
    .map((operand) => operand.replace(/(?:[<>]=?|[=!]=) [\d.]+\s*$/, "").trim())
    .map((operand) => operand.replace(/^absent\((.*)\)$/, "$1"))
}

/** The names of metrics in a query, without those that recording rules make. */
export function metricsOf(expr: string): string[] {
  return expr.match(/(?<![\w:])(?:posthorn|nodejs|process)_\w+(?!:)/g) ?? []
}
