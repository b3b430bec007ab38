/** `/metrics` and `/healthz` of `posthorn serve` and `posthorn worker`, as they are typed. */
import { createServer } from "node:http"
import { connect } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { addressOf, serve, start } from "../api/support/serving.ts"
import type { Program } from "../support/process.ts"
import { seriesOf, total } from "../support/series.ts"
import { freshDatabase, ownPostgres } from "../support/servers/postgres.ts"

const METRICS = /"msg":"metrics are at (http:\/\/[^"]+)\/metrics"/
const ANY_PORT = { POSTHORN_METRICS: "127.0.0.1:0" }

const scrapedAt = async (program: Program) => METRICS.exec(await program.line(METRICS))![1]!

test("serve answers /metrics and /healthz on an address of their own, and nothing else", async () => {
  const program = serve([], ANY_PORT)
  const api = await addressOf(program)
  const url = await scrapedAt(program)
  await fetch(`${api}/api/v1/health`)
  const metrics = await fetch(`${url}/metrics?`)
  expect(metrics.status).toBe(200)
  expect(metrics.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
  const series = seriesOf(await metrics.text())
  expect(total(series, "posthorn_messages_accepted_total")).toBe(0)
  const health = { method: "GET", route: "/api/v1/health", status: "200" }
  expect(total(series, "posthorn_api_requests_total", health)).toBe(1)
  expect(total(series, "nodejs_eventloop_lag_p99_seconds")).toBeGreaterThanOrEqual(0)
  expect(total(series, "process_start_time_seconds")).toBeGreaterThan(0)

  const open = await fetch(`${url}/metrics`, { headers: { accept: "application/openmetrics-text" } })
  expect(open.headers.get("content-type")).toMatch(/^application\/openmetrics-text; version=1\.0\.0/)
  expect(await open.text()).toMatch(/# EOF\n$/)
  const head = await fetch(`${url}/metrics`, { method: "HEAD" })
  expect([head.status, await head.text()]).toEqual([200, ""])
  expect(Number(head.headers.get("content-length"))).toBeGreaterThan(1000)

  const healthy = await fetch(`${url}/healthz`)
  expect([healthy.status, await healthy.text()]).toEqual([200, "ok\n"])
  for (const path of ["/", "/api/v1/health", "/metrics/", "//metrics"])
    expect((await fetch(url + path)).status).toBe(404)
  const post = await fetch(`${url}/metrics`, { method: "POST", body: "x" })
  expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD"])
  expect((await fetch(`${api}/metrics`)).status).toBe(404)
})

test("a stop ends the listener too, also with connections that idle", async () => {
  const program = serve([], ANY_PORT)
  await addressOf(program)
  const { port, hostname } = new URL(await scrapedAt(program))
  const idle = connect(Number(port), hostname)
  onTestFinished(() => void idle.destroy())
  await new Promise((resolve) => idle.once("connect", resolve))
  program.process.kill("SIGTERM")
  expect(await program.ended).toEqual({ code: 0, signal: null })
})

test("a worker answers, and counts its own deliveries", async () => {
  const program = start(["worker", "--store", await freshDatabase()], ANY_PORT)
  const url = await scrapedAt(program)
  const series = seriesOf(await (await fetch(`${url}/metrics`)).text())
  expect(total(series, "posthorn_slots", { state: "free" })).toBe(2048)
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
})

test("/healthz says in a sentence that the store cannot be written", async () => {
  const postgres = await ownPostgres()
  const url = await scrapedAt(start(["worker", "--store", postgres.url], ANY_PORT))
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  await postgres.stop("immediate")
  await expect.poll(async () => (await fetch(`${url}/healthz`)).status, { timeout: 10_000 }).toBe(503)
  expect(await (await fetch(`${url}/healthz`)).text()).toMatch(/^\S.+\n$/)
  // The metrics need no store.
  const series = seriesOf(await (await fetch(`${url}/metrics`)).text())
  expect(total(series, "posthorn_store_errors_total", { code: "store_unavailable" })).toBeGreaterThan(0)
})

/** A program that has a port. */
async function taken(port = 0): Promise<number> {
  const server = createServer()
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  return (server.address() as { port: number }).port
}

test("an address that was asked for and is taken ends the process", async () => {
  const where = `127.0.0.1:${await taken()}`
  const problem = `posthorn: metrics cannot be offered at ${where}: the port is taken by another program; choose another address with`
  const program = serve(["--metrics", where])
  expect((await program.ended).code).toBe(1)
  expect(program.stderr).toContain(`${problem} --metrics, or off\n`)
  const worker = start(["worker", "--store", await freshDatabase()], { POSTHORN_METRICS: where })
  expect((await worker.ended).code).toBe(1)
  expect(worker.stderr).toContain(`${problem} POSTHORN_METRICS, or off\n`)
})

test("where the default port is taken the process warns and goes on", async () => {
  // Another program of this machine may have it already.
  await taken(9464).catch(() => {})
  const program = serve([], { POSTHORN_METRICS: "" })
  await addressOf(program)
  expect(await program.line(/metrics cannot be offered at 127\.0\.0\.1:9464/)).toContain('"level":40')
  expect(program.stderr).not.toMatch(METRICS)
})

test.each([
  ["9464", /--metrics must be HOST:PORT, such as 127\.0\.0\.1:9464, or off, not "9464"/],
  ["localhost:99999", /--metrics must be HOST:PORT/],
  ["on", /--metrics must be HOST:PORT/],
  [
    "192.0.2.77:9464",
    /metrics cannot be offered at 192\.0\.2\.77:9464: it is not an address of this machine/,
  ],
])("--metrics %s is refused", async (value, sentence) => {
  const program = serve(["--metrics", value])
  expect((await program.ended).code).toBeGreaterThan(0)
  expect(program.stderr).toMatch(sentence)
})
