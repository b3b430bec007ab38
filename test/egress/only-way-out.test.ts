/** One module opens outbound connections. Every other file of `src/` is read for anything else that could. */
import { globSync, readFileSync } from "node:fs"
import { isBuiltin } from "node:module"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"

const ROOT = fileURLToPath(new URL("../..", import.meta.url))
const EGRESS = "src/transport/egress/"

const NETWORK = [
  "net",
  "tls",
  "http",
  "https",
  "http2",
  "dgram",
  "dns",
  "dns/promises",
  "undici",
  "ws",
  "quic",
]
const PROGRAMS = ["child_process", "cluster"]
const GLOBALS = [
  "fetch",
  "WebSocket",
  "EventSource",
  "WebSocketStream",
  "WebTransport",
  "navigator.sendBeacon",
]
/** Whoever has one of these has every module, by a name that is made at run time. */
const BACK_DOORS = ["createRequire", "getBuiltinModule", "process.binding"]

/** What a file outside the egress module may have all the same, and why. */
const ALLOWED: { readonly [file: string]: { readonly [what: string]: string } } = {
  "src/cli/demo/receiver.ts": { http: "listens: the demo's customers, on loopback" },
  "src/cli/demo/engine-process.ts": { child_process: "forks the demo's own engine, to kill it" },
}

/** Text between quotes and comments hides nothing that runs, apart from the names of modules. */
function withoutComments(text: string): string {
  return text.replace(
    /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|\/\*[\s\S]*?\*\/|(?<![:\w])\/\/[^\n]*/g,
    (_, quoted) => quoted ?? " ",
  )
}

/** Everything in a source text that could open a connection or start a program that does. */
function waysOut(source: string): string[] {
  const text = withoutComments(source)
  const modules = [
    ...text.matchAll(/\b(?:import|export)\s+(?!type\b)(?:([\w\s{},*$]*?)\s*from\s*)?["']([^"']+)["']/g),
  ]
    // `import { type A, type B }` is erased as `import type` is.
    .filter(([, names]) => names === undefined || !/^\{(\s*type\s+[\w\s]+,?)+\s*\}$/.test(names.trim()))
    .map(([, , name]) => name!)
  const asked = [...text.matchAll(/\b(?:import|require)\s*\(\s*(?:["'`]([^"'`]*)["'`])?/g)].map(
    ([, name]) => name ?? "a module whose name is not written out",
  )
  const withoutQuotes = text.replace(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, '""')
  // As a property it is another's, unless of the global object; with typed parameters it is a method being declared.
  const named = [...GLOBALS, ...BACK_DOORS].filter((name) =>
    new RegExp(
      `(?<![\\w$#]|(?<!globalThis|global|process)\\.)${name.replace(".", "\\.")}(?=\\s*[(<;,)]|\\s*$)(?!\\(\\s*\\w+\\??:)`,
      "m",
    ).test(withoutQuotes),
  )
  const bare = [...modules, ...asked].map((name) => name.replace(/^node:/, ""))
  const suspect = [...NETWORK, ...PROGRAMS, "a module whose name is not written out"]
  return [...new Set([...bare.filter((name) => suspect.includes(name)), ...named])]
}

const FILES = globSync("src/**/*.{ts,mts,cts,js,mjs,cjs}", { cwd: ROOT })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => !/(\.test|\/conformance)\.ts$/.test(file) && !file.startsWith(EGRESS))

test("nothing outside the egress module can open a connection", () => {
  expect(FILES.length).toBeGreaterThan(50)
  const found = FILES.flatMap((file) =>
    waysOut(readFileSync(`${ROOT}/${file}`, "utf8"))
      .filter((what) => ALLOWED[file]?.[what] === undefined)
      .map((what) => `${file}: ${what}`),
  )
  expect(found).toEqual([])
})

test("every exception is still needed", () => {
  for (const [file, reasons] of Object.entries(ALLOWED))
    expect(waysOut(readFileSync(`${ROOT}/${file}`, "utf8")).sort()).toEqual(Object.keys(reasons).sort())
})

test("the demo's receiver listens and never connects", () => {
  const text = readFileSync(`${ROOT}/src/cli/demo/receiver.ts`, "utf8")
  expect(
    /import \{([^}]*)\} from "node:http"/
      .exec(text)![1]!
      .split(",")
      .map((name) => name.trim()),
  ).toEqual(["createServer", "type IncomingMessage", "type Server", "type ServerResponse"])
})

test("the egress module itself connects in two files, and resolves in one", () => {
  const inside = globSync(`${EGRESS}*.ts`, { cwd: ROOT }).filter((file) => !/\.test\.ts$/.test(file))
  const found = inside.map((file) => {
    const text = readFileSync(`${ROOT}/${file}`, "utf8").replace(/import \{ isIP \} from "node:net"\n/, "")
    return [file.slice(EGRESS.length), ...waysOut(text)]
  })
  expect(found.filter(([, ...ways]) => ways.length > 0).sort()).toEqual([
    ["connect.ts", "undici"],
    ["pools.ts", "undici"],
    ["proxy.ts", "net"],
    ["resolver.ts", "dns"],
  ])
})

test("no dependency is another client", () => {
  const { dependencies } = JSON.parse(readFileSync(`${ROOT}/package.json`, "utf8"))
  const imported = new Set(
    FILES.flatMap((file) =>
      [...readFileSync(`${ROOT}/${file}`, "utf8").matchAll(/\bfrom "([^".][^"]*)"/g)].map(
        ([, name]) => name!,
      ),
    ).filter((name) => !isBuiltin(name) && name !== "vitest"),
  )
  expect([...imported].filter((name) => !(name in dependencies))).toEqual([])
})

describe("the check finds", () => {
  test.each([
    ['import { connect } from "node:net"', "net"],
    ['import net from "net"', "net"],
    ['import * as tls from "node:tls"', "tls"],
    ["import {\n  request,\n  type Agent,\n} from 'node:https'", "https"],
    ['import "undici"', "undici"],
    ['export { Agent } from "undici"', "undici"],
    ['import { type Socket, connect } from "node:net"', "net"],
    ['const { request } = await import("node:http")', "http"],
    ["const http = await import(`node:http2`)", "http2"],
    ['const { lookup } = require("dns")', "dns"],
    ['import { lookup } from "node:dns/promises"', "dns/promises"],
    ['import { createSocket } from "node:dgram"', "dgram"],
    ['import { spawn } from "node:child_process"', "child_process"],
    ["await import(name)", "a module whose name is not written out"],
    ["const answer = await fetch(url)", "fetch"],
    ["const answer = await globalThis.fetch(url)", "fetch"],
    ["const send = fetch;", "fetch"],
    ["const send = fetch\nsend(url)", "fetch"],
    ["use(fetch)", "fetch"],
    ['new WebSocket("wss://x.example")', "WebSocket"],
    ["new EventSource(url)", "EventSource"],
    ["const require = createRequire(import.meta.url)", "createRequire"],
    ['process.getBuiltinModule("net")', "getBuiltinModule"],
  ])("%j", (source, what) => expect(waysOut(`/** About net. */\n${source}\n`)).toEqual([what]))
})

describe("the check leaves alone", () => {
  test.each([
    'import type { Socket } from "node:net"',
    'import { type Socket } from "node:net"',
    'import { type Agent, type Dispatcher as D } from "undici"',
    'import { connect } from "./net.ts"',
    "// import net from 'node:net'",
    "/* fetch(url) */",
    "async #fetch(id: string) { return this.#fetch(id) }",
    "this.store.fetch(id)",
    "interface Store {\n  fetch(lanes: readonly LaneAsk[], now: number): Promise<LaneWork[]>\n}",
    'throw new Error("fetch(url) is not used")',
    'const url = "https://example.com" // fetch(url)',
  ])("%j", (source) => expect(waysOut(source)).toEqual([]))
})
