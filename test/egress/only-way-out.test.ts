/** Only `src/transport/egress/` opens outbound connections: every other file of `src/` is searched for code that could. */
import { globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"
import { UNKNOWN, waysOut } from "./ways-out.ts"

const ROOT = fileURLToPath(new URL("../..", import.meta.url))
const EGRESS = "src/transport/egress/"
const HTTP1 = "src/transport/http1/"

/** Exceptions for files and folders outside the egress module, each with its reason. */
const ALLOWED: { readonly [path: string]: { readonly [what: string]: string } } = {
  "src/agent/connection.ts": { ws: "the server that the agent's operator names" },
  "src/agent/forward.ts": {
    http: "the local program that the agent's operator names; an event decides the path below it",
    https: "the same",
  },
  "src/api/server.ts": { fastify: "listens: the HTTP API" },
  "src/api/logging.ts": { fastify: "what its log lines are made by" },
  "src/api/openapi.ts": { fastify: "describes routes", "@fastify/swagger": "writes the document" },
  "src/api/openapi-import/yaml.ts": { child_process: "runs the YAML parser with limits" },
  "src/api/openapi-import/yaml-process.ts": { yaml: "reads a text, in a process of its own" },
  "src/api/relay-socket.ts": { ws: "upgrades connections that agents open" },
  "src/api/compile-schema.ts": { ajv: "compares values with schemas that we wrote" },
  "src/resources/json-schema.ts": {
    ajv: "compares schemas of event types with the meta-schema; it loads nothing",
  },
  "src/api/jwt.ts": { jose: "checks tokens with the operator's key, and looks for none elsewhere" },
  "src/cli/http-client.ts": { fetch: "asks the server that the operator names" },
  "src/cli/commands/bench.ts": { child_process: "runs the project's own benchmark" },
  "src/cli/scrape-server.ts": { http: "listens: metrics and the health check" },
  "src/cli/metrics-listener.ts": { "@prometheus-io/client": "adds the metrics of the process" },
  "src/observe/metrics/": {
    "@prometheus-io/client": "counts; it has a client for a push gateway, which nothing here uses",
  },
  "src/observe/opentelemetry/": { "@opentelemetry/api": "makes spans, and sends none" },
  "src/cli/trace-export.ts": {
    "@opentelemetry/api": "registers the exporter",
    "@opentelemetry/resources": "describes this process",
    "@opentelemetry/sdk-trace": "gathers spans",
    "@opentelemetry/exporter-trace-otlp-http":
      "sends spans to the collector of OTEL_EXPORTER_OTLP_ENDPOINT; no tenant names it",
    "@opentelemetry/exporter-trace-otlp-proto": "the same as protobuf",
  },
  "src/cli/demo/receiver.ts": { http: "listens: the demo's customers, on loopback" },
  "src/cli/demo/engine-process.ts": { child_process: "forks the demo's own engine, to kill it" },
  "src/core/auth.ts": { tls: "reads certificates as a connection would" },
  "src/transport/http.ts": { "egress/connect.ts": "gives the guarded sockets to the HTTP/1.1 client" },
  "src/transport/notify/smtp.ts": {
    nodemailer: "mail to the SMTP server that the operator configured; no tenant names it",
  },
  "src/store/postgres/": { pg: "the operator's own database; no tenant names it" },
  "src/schedule/redis/": { ioredis: "the operator's own Redis; no tenant names it" },
}

const FILES = globSync("src/**/*.{ts,mts,cts,js,mjs,cjs}", { cwd: ROOT })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => !/(\.test|\bconformance(\/.+)?)\.ts$/.test(file) && !file.startsWith(EGRESS))

const read = (file: string) => readFileSync(`${ROOT}/${file}`, "utf8")

test("nothing outside the egress module can open a connection", () => {
  expect(FILES.length).toBeGreaterThan(50)
  const isAllowed = (file: string, what: string) =>
    Object.entries(ALLOWED).some(([path, reasons]) => file.startsWith(path) && what in reasons)
  const found = FILES.flatMap((file) =>
    waysOut(read(file))
      .filter((what) => !isAllowed(file, what))
      .map((what) => `${file}: ${what}`),
  )
  expect(found).toEqual([])
})

test("every exception is still needed", () => {
  for (const [path, reasons] of Object.entries(ALLOWED)) {
    const found = FILES.filter((file) => file.startsWith(path)).flatMap((file) => waysOut(read(file)))
    expect([...new Set(found)].sort(), path).toEqual(Object.keys(reasons).sort())
  }
})

const LISTENS = "createServer, type IncomingMessage, type Server, type ServerResponse"

test.each([
  ["src/cli/demo/receiver.ts", "http", LISTENS],
  ["src/cli/scrape-server.ts", "http", LISTENS],
  ["src/core/auth.ts", "tls", "createSecureContext"],
])("%s takes nothing from %s that connects", (file, module, names) => {
  const from = new RegExp(`import \\{([^}]*)\\} from "node:${module}"`, "g")
  expect([...read(file).matchAll(from)].map(([, taken]) => taken!.trim())).toEqual([names])
})

test("the egress module itself connects in two files, and resolves in one", () => {
  const inside = globSync(`${EGRESS}*.ts`, { cwd: ROOT }).filter((file) => !/\.test\.ts$/.test(file))
  const found = inside.map((file) => {
    const text = read(file).replace(/import \{ isIP \} from "node:net"\n/, "")
    return [file.slice(EGRESS.length), ...waysOut(text)]
  })
  expect(found.filter(([, ...ways]) => ways.length > 0).sort()).toEqual([
    ["connect.ts", "net", "tls"],
    ["proxy.ts", "net"],
    ["resolver.ts", "dns"],
  ])
})

test("the guard and the HTTP/1.1 client do not import each other", () => {
  const imports = (folder: string, other: string) =>
    globSync(`${folder}*.ts`, { cwd: ROOT })
      .filter((file) => !/\.test\.ts$/.test(file))
      .filter((file) => read(file).includes(`"../${other}/`))
  expect(imports(EGRESS, "http1")).toEqual([])
  expect(imports(HTTP1, "egress")).toEqual([])
})

describe("the check finds", () => {
  test.each([
    ['import { connect } from "node:net"', "net"],
    ['import net from "net"', "net"],
    ['import * as tls from "node:tls"', "tls"],
    ["import {\n  request,\n  type Agent,\n} from 'node:https'", "https"],
    ['import "undici"', "undici"],
    ['export { Agent } from "undici"', "undici"],
    ['export * from "node:net"', "net"],
    ['import net = require("net")', "net"],
    ['import pool from "undici/lib/dispatcher/pool.js"', "undici"],
    ['import axios from "axios"', "axios"],
    ['import { x } from "@scope/client/deep"', "@scope/client"],
    ['import { type Socket, connect } from "node:net"', "net"],
    ['const { request } = await import("node:http")', "http"],
    ["const http = await import(`node:http2`)", "http2"],
    ['import { lookup } from "node:dns/promises"', "dns"],
    ['import { createSocket } from "node:dgram"', "dgram"],
    ['import { ClientRequest } from "node:_http_client"', "_http_client"],
    ['import { ClientRequest } from "_http_client"', "_http_client"],
    ['import { spawn } from "node:child_process"', "child_process"],
    ['import { createRequire } from "node:module"', "module"],
    ['import { open } from "node:inspector"', "inspector"],
    ['import { openTunnel } from "../transport/egress/proxy.ts"', "egress/proxy.ts"],
    ['import { guardedConnector } from "./egress/connect.ts"', "egress/connect.ts"],
    ["await import(name)", UNKNOWN],
    ['await import("node:" + "net")', UNKNOWN],
    [`await import(\`node:\${name}\`)`, UNKNOWN],
    ["const answer = await fetch(url)", "fetch"],
    ["await fetch?.(url)", "fetch"],
    ["fetch.call(null, url)", "fetch"],
    ["const send = fetch.bind(null)", "fetch"],
    ["const send = fetch;", "fetch"],
    ["const send = fetch\nsend(url)", "fetch"],
    ["const send = fetch as Send", "fetch"],
    ["const [send] = [fetch]", "fetch"],
    ["const client = { fetch }", "fetch"],
    ["const client = { send: fetch }", "fetch"],
    ["const client = { [fetch]: 1 }", "fetch"],
    [`const text = \`\${await fetch(url)}\``, "fetch"],
    ['const quote = /"/; fetch(url) // "', "fetch"],
    ["use(fetch)", "fetch"],
    ["class Client { send = fetch }", "fetch"],
    ["function send(by = fetch) {}", "fetch"],
    ["const answer = await globalThis.fetch(url)", "globalThis"],
    ['globalThis["fetch"](url)', "globalThis"],
    ["const { fetch } = globalThis", "globalThis"],
    ["new globalThis.WebSocket(url)", "globalThis"],
    ['new WebSocket("wss://x.example")', "WebSocket"],
    ["new EventSource(url)", "EventSource"],
    ["navigator.sendBeacon(url)", "navigator"],
    ['process.getBuiltinModule("net")', "getBuiltinModule"],
    ['process["binding"]("tcp_wrap")', "binding"],
    ["process[name]", "process[…]"],
    ['process.mainModule.require("net")', "mainModule"],
    ['new Function("return fetch")()', "Function"],
    ['eval("fetch")', "eval"],
  ])("%j", (source, what) => expect(waysOut(`/** About net. */\n${source}\n`)).toEqual([what]))

  test("a module that is required, and that it is", () => {
    expect(waysOut('const { lookup } = require("dns")')).toEqual(["dns", "require"])
  })
})

describe("the check leaves alone", () => {
  test.each([
    'import type { Socket } from "node:net"',
    'import { type Socket } from "node:net"',
    'import { type Agent, type Dispatcher as D } from "undici"',
    'export type { Dispatcher } from "undici"',
    'type Made = typeof import("node:net")',
    'import { connect } from "./net.ts"',
    'import { Guard } from "./transport/egress/guard.ts"',
    'const { run } = await import("./worker.ts")',
    "// import net from 'node:net'",
    "/* fetch(url) */",
    "class Lanes { async #fetch(id: string) { return this.#fetch(id) } }",
    "class Store { fetch(id: string) {} }",
    "const store = { fetch: (id: string) => id, send() {} }",
    "export async function fetch(id: string) { return fetch(id) }",
    'import { fetch } from "./lanes.ts"\nfetch(lanes)',
    "this.store.fetch(id)",
    "interface Store {\n  fetch(lanes: readonly LaneAsk[], now: number): Promise<LaneWork[]>\n}",
    'throw new Error("fetch(url) is not used")',
    'const url = "https://example.com" // fetch(url)',
  ])("%j", (source) => expect(waysOut(source)).toEqual([]))
})
