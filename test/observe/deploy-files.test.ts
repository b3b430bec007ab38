/** The files for Prometheus and Grafana are valid, complete, and lead to runbooks that exist. */
import { execFile } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { collectDefaultMetrics } from "@prometheus-io/client"
import { expect, onTestFinished, test } from "vitest"
import { parse } from "yaml"
import { openPosthorn } from "../../src/posthorn.ts"
import { temporaryFolder } from "../support/harness.ts"
import { requireTool } from "../support/tools.ts"
import { DEPLOY, dashboard, metricsOf, operandsOf, queries, ROOT, RULE_FILES, rules } from "./deploy-files.ts"

/** promtool evaluates every rule a thousand times: 2 s of CPU. */
const PATIENCE = { timeout: 120_000 }
const DATASOURCE = { type: "prometheus", uid: `\${datasource}` }
const UNIT_TESTS = join(ROOT, "test/observe/alert-rules.yml")
const alerts = rules.filter(({ alert }) => alert !== undefined)

function promtool(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(requireTool("promtool", "prometheus"), args)
}

test("promtool finds no fault in rules and configuration", async () => {
  const { stdout } = await promtool("check", "rules", "--lint-fatal", ...RULE_FILES)
  expect(stdout).toContain("SUCCESS")
  await promtool("check", "config", "--lint-fatal", join(DEPLOY, "prometheus/prometheus.yml"))
})

test("each alert fires in the unit tests of the rules, and none on a healthy system", PATIENCE, async () => {
  await promtool("test", "rules", UNIT_TESTS)
  const [healthy, ...others] = parse(readFileSync(UNIT_TESTS, "utf8")).tests
  const names = alerts.map(({ alert }) => alert)
  type Case = { alertname: string; exp_alerts: unknown[] }
  expect(healthy.alert_rule_test.map(({ alertname }: Case) => alertname)).toEqual(names)
  const firing = others.flatMap(({ alert_rule_test }: { alert_rule_test: Case[] }) =>
    alert_rule_test.filter(({ exp_alerts }) => exp_alerts.length > 0).map(({ alertname }) => alertname),
  )
  expect([...new Set(firing)].sort()).toEqual([...names].sort())
})

test("each alert has a severity, a summary, a description, and a runbook that says all three things", () => {
  const page = readFileSync(join(ROOT, "docs/operations.md"), "utf8")
  const runbooks = page.split("\n## Runbooks\n")[1]!.split("\n## ")[0]!.split("\n### ").slice(1)
  expect(runbooks.map((text) => text.split("\n")[0]).sort()).toEqual(alerts.map(({ alert }) => alert).sort())
  for (const text of runbooks) expect(text).toMatch(/\*\*Means:\*\*.*\*\*Look at:\*\*.*\*\*Do:\*\*/s)
  for (const { alert, labels, annotations } of alerts) {
    expect(alert).toMatch(/^Posthorn[A-Z]\w+$/)
    expect(labels!.severity).toMatch(/^(critical|warning)$/)
    expect(annotations).toEqual({
      summary: expect.stringMatching(/\.$/),
      description: expect.stringMatching(/\.$/),
      runbook_url: `docs/operations.md#${alert!.toLowerCase()}`,
    })
  }
})

test("the page about observability lists every alert with its severity", () => {
  const page = readFileSync(join(ROOT, "docs/observability.md"), "utf8")
  const listed = [...page.matchAll(/^\| `(Posthorn\w+)` \| (\w+) \|/gm)].map(([, alert, severity]) => [
    alert,
    severity,
  ])
  expect(listed).toEqual(alerts.map(({ alert, labels }) => [alert, labels!.severity]))
})

test("the operands of an alert are what is compared, one by one", () => {
  const expr = 'up{job="a"} == 0 and on (job) sum by (job) (increase(b_total[5m])) >= 1.5 or absent(c)'
  expect(operandsOf(expr)).toEqual(['up{job="a"}', "sum by (job) (increase(b_total[5m]))", "c"])
})

test("every panel has a title, a query, a place of its own, and the data source that the reader chooses", () => {
  const { id, uid, schemaVersion, panels, templating } = dashboard
  expect({ id, uid, schemaVersion }).toEqual({ id: null, uid: "posthorn", schemaVersion: 39 })
  expect(templating.list.map(({ name, type }) => [name, type])).toEqual([
    ["datasource", "datasource"],
    ["job", "query"],
  ])
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(x + w).toBeLessThanOrEqual(24)
    return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`)
  })
  expect(new Set(cells).size).toBe(cells.length)
  for (const { type, title, datasource, targets = [] } of panels) {
    expect(title).not.toBe("")
    if (type === "row") continue
    expect(targets.length, title).toBeGreaterThan(0)
    for (const source of [datasource, ...targets.map((target) => target.datasource)])
      expect(source, title).toEqual(DATASOURCE)
  }
  expect(JSON.stringify(dashboard)).not.toContain("__inputs")
})

test("every query of the dashboard keeps to the jobs that the reader chooses", () => {
  const selectors = queries.flatMap(({ panel, expr }) =>
    [...expr.matchAll(/(?<![\w:])(?:posthorn|nodejs|process)_\w+(\{[^}]*\})?/g)].map(([, labels]) => ({
      panel,
      labels,
    })),
  )
  expect(selectors.length).toBeGreaterThan(80)
  expect(selectors.filter(({ labels }) => !labels?.startsWith('{job=~"$job"'))).toEqual([])
})

test("the runbooks name panels and rows that exist", () => {
  const page = readFileSync(join(ROOT, "docs/operations.md"), "utf8")
  const runbooks = page.split("\n## Runbooks\n")[1]!.split("\n## ")[0]!
  const named = [...runbooks.matchAll(/(?<!\*)\*([A-Z][^*]+)\*(?!\*)/g)].map(([, title]) => title!)
  const known = dashboard.panels.map(({ title }) => title)
  expect(named.length).toBeGreaterThan(10)
  const isKnown = (name: string) =>
    known.some((title) => title.startsWith(name)) || name.startsWith("Status → ")
  expect(named.filter((name) => !isKnown(name))).toEqual([])
})

test("Grafana is given the dashboard's folder and the address of Prometheus in compose.yaml", () => {
  const { services } = parse(readFileSync(join(ROOT, "compose.yaml"), "utf8"), { merge: true })
  const { prometheus, grafana, server, worker } = services
  const yaml = (path: string) => parse(readFileSync(join(DEPLOY, path), "utf8"))
  for (const { profiles, volumes } of [prometheus, grafana]) {
    expect(profiles).toEqual(["observe"])
    for (const [from] of volumes.map((volume: string) => volume.split(":")))
      if (from.startsWith("./")) expect(existsSync(join(ROOT, from)), from).toBe(true)
  }
  const [datasource] = yaml("grafana/provisioning/datasources/prometheus.yml").datasources
  expect(datasource.url).toBe("http://prometheus:9090")
  const [provider] = yaml("grafana/provisioning/dashboards/posthorn.yml").providers
  expect(grafana.volumes).toContain(`./deploy/grafana/dashboards:${provider.options.path}:ro`)
  const [{ dns_sd_configs }] = yaml("prometheus/prometheus.yml").scrape_configs
  expect(dns_sd_configs[0]).toMatchObject({ names: ["server", "worker"], port: 9464 })
  for (const { environment } of [server, worker]) expect(environment.POSTHORN_METRICS).toBe("0.0.0.0:9464")
})

test("every metric that a query names is exported", async () => {
  const posthorn = await openPosthorn({
    store: `sqlite:${join(temporaryFolder(), "posthorn.db")}`,
    metrics: true,
    logger: "silent",
  })
  onTestFinished(() => posthorn.close())
  const registry = posthorn.registry!
  collectDefaultMetrics({ register: registry })
  const exported = new Set(
    registry
      .getMetricsAsArray()
      .flatMap(({ name, type }) =>
        type === "histogram" ? ["_bucket", "_sum", "_count"].map((suffix) => name + suffix) : [name],
      ),
  )
  const named = [...queries, ...rules].flatMap(({ expr }) => metricsOf(expr))
  expect(new Set(named).size).toBeGreaterThan(35)
  expect([...new Set(named)].filter((name) => !exported.has(name))).toEqual([])
})
