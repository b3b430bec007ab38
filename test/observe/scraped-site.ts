/** A server, two workers, a receiver with a ledger, and a Prometheus that scrapes the processes every second. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, vi } from "vitest"
import { parse } from "yaml"
import { programFile } from "../support/bundled.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { Program } from "../support/process.ts"
import { Receiver } from "../support/receiver.ts"
import { freePort } from "../support/servers/port.ts"
import { PrometheusServer } from "../support/servers/prometheus-server.ts"
import { DEPLOY, RULE_FILES } from "./deploy-files.ts"

const KEY = "a-key-of-the-test-with-24-characters-and-more"
const EGRESS = ["--egress-allow", "127.0.0.0/8", "--egress-ports", "any"]

export const WORKER_SLOTS = 4

/** Snapshots are 15 s apart, and farther on a busy machine: the monitor rests twenty times as long as a snapshot takes. */
const PATIENCE_MS = 90_000

export class ScrapedSite {
  readonly receiver: Receiver
  readonly prometheus: PrometheusServer
  /** HOST:PORT of each process's metrics, the server's first. */
  readonly targets: readonly string[]
  readonly #api: string

  private constructor(
    receiver: Receiver,
    prometheus: PrometheusServer,
    targets: readonly string[],
    api: string,
  ) {
    this.receiver = receiver
    this.prometheus = prometheus
    this.targets = targets
    this.#api = api
  }

  /** Resolves when Prometheus has scraped all three. */
  static async start(): Promise<ScrapedSite> {
    const store = await migratedDatabase()
    const receiver = await Receiver.start()
    onTestFinished(() => receiver.close())
    const targets = await Promise.all([1, 2, 3].map(async () => `127.0.0.1:${await freePort()}`))
    const prometheus = await PrometheusServer.start(scrapeEverySecond(targets))
    const run = (command: string, target: string, ...flags: string[]) => {
      const common = ["--store", store, "--metrics", target, ...EGRESS]
      const program = Program.start(programFile("posthorn"), [command, ...common, ...flags])
      onTestFinished(async () => void (await program.kill()))
      return program
    }
    const [first, ...others] = targets
    vi.stubEnv("POSTHORN_API_KEY", KEY)
    onTestFinished(() => void vi.unstubAllEnvs())
    const server = run("serve", first!, "--no-deliver", "--host", "127.0.0.1", "--port", "0")
    const workers = others.map((target) => run("worker", target, "--max-in-flight", `${WORKER_SLOTS}`))
    const { address } = JSON.parse(await server.line(/listens on/))
    for (const worker of workers) await worker.line(/delivers from/)
    const site = new ScrapedSite(receiver, prometheus, targets, `${address}/api/v1`)
    await site.value("sum(up)", 3)
    return site
  }

  async call(path: string, body: object): Promise<void> {
    const response = await fetch(this.#api + path, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }

  /** Resolves when the query has this one value. */
  async value(expr: string, expected: number): Promise<void> {
    const values = async () => (await this.prometheus.query(expr)).map(({ value }) => value)
    await expect.poll(values, { timeout: PATIENCE_MS, interval: 200, message: expr }).toEqual([expected])
  }

  /** What one process answers a scrape. */
  async metrics(target: string): Promise<string> {
    return (await fetch(`http://${target}/metrics`)).text()
  }
}

/** The configuration of `deploy/`, with other targets and a shorter interval. */
function scrapeEverySecond(targets: readonly string[]): object {
  const config = parse(readFileSync(join(DEPLOY, "prometheus/prometheus.yml"), "utf8"))
  const [{ job_name }] = config.scrape_configs
  return {
    ...config,
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: RULE_FILES,
    scrape_configs: [{ job_name, static_configs: [{ targets }] }],
  }
}
