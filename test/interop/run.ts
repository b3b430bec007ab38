/** Starts one server on loopback, runs every case against it, and stops it. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { type AddressInfo, connect, createServer } from "node:net"
import { networkInterfaces, tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { systemClock } from "../../src/core/clock.ts"
import { Guard } from "../../src/transport/egress/guard.ts"
import { parseEgress } from "../../src/transport/egress/settings.ts"
import { HttpTransport } from "../../src/transport/http.ts"
import { requireTool } from "../support/tools.ts"
import { CASES } from "./cases.ts"
import { HANDLERS, type Place, type ServerKind } from "./servers.ts"

/** Go and Java compile first. */
const START_MS = 60_000
const STOP_MS = 3000

export interface Report {
  readonly name: string
  readonly version: string
  /** By case. A failure begins with "✗". */
  readonly cells: { readonly [name: string]: string }
}

export async function runServer(kind: ServerKind, program: string, cases = CASES): Promise<Report> {
  const place = await makePlace()
  const clock = systemClock()
  const guard = new Guard(parseEgress({ allow: ["127.0.0.0/8", "::1"], ports: "any" }), clock)
  const transport = new HttpTransport(clock, guard)
  const children: ChildProcess[] = []
  try {
    if (kind.isProxy)
      children.push(start(process.execPath, [join(HANDLERS, "node.ts")], { PORT: `${place.originPort}` }))
    for (const [name, text] of Object.entries(kind.files?.(place) ?? {}))
      writeFileSync(join(place.folder, name), text)
    const { port, tlsPort, originPort, cert, key } = place
    children.push(
      start(program, kind.arguments(place), {
        ...{ PORT: `${port}`, TLS_PORT: `${tlsPort}`, CERT: cert, KEY: key, IDLE_MS: `${kind.idleMs}` },
        ...kind.environment,
      }),
    )
    for (const one of [port, ...(kind.isProxy ? [originPort] : []), ...(kind.tls ? [tlsPort] : [])])
      await listens(one, children)
    const subject = { kind, place, transport, ca: readFileSync(cert, "utf8") }
    const cells: { [name: string]: string } = {}
    for (const [name, run] of Object.entries(cases))
      cells[name] = await run(subject).catch((error: Error) => `✗ ${error.message}`)
    return { name: kind.name, version: versionOf(program, kind), cells }
  } finally {
    await transport.close()
    guard.close()
    await Promise.all(children.map(stop))
    rmSync(place.folder, { recursive: true, force: true })
  }
}

async function makePlace(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-interop-"))
  const cert = join(folder, "cert.pem")
  const key = join(folder, "key.pem")
  const pem = join(folder, "both.pem")
  const openssl =
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=interop"
  const names = ["-addext", "subjectAltName=IP:127.0.0.1"]
  execFileSync(requireTool("openssl"), [...openssl.split(" "), ...names, "-keyout", key, "-out", cert], {
    stdio: "pipe",
  })
  writeFileSync(pem, readFileSync(cert, "utf8") + readFileSync(key, "utf8"))
  const [port, tlsPort, originPort] = (await freePorts(3)) as [number, number, number]
  const hosts = hasIpv6() ? ["127.0.0.1", "[::1]"] : ["127.0.0.1"]
  const addresses = hosts.map((host) => `${host}:${port}`)
  return { port, addresses, tlsPort, originPort, folder, cert, key, pem }
}

function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"))
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"))
  await Promise.all(servers.map((server) => once(server, "listening")))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

const output = new WeakMap<ChildProcess, string>()

/** In a process group of its own, so that its workers end with it. */
function start(
  program: string,
  given: readonly string[],
  environment: { [name: string]: string },
): ChildProcess {
  const child = spawn(program, given, {
    ...{ cwd: HANDLERS, detached: true, stdio: ["ignore", "pipe", "pipe"] },
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...environment },
  })
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk) => output.set(child, `${output.get(child) ?? ""}${chunk}`.slice(-2000)))
  return child
}

async function listens(port: number, children: readonly ChildProcess[]): Promise<void> {
  const deadline = performance.now() + START_MS
  for (;;) {
    const socket = connect(port, "127.0.0.1")
    const isOpen = await once(socket, "connect").then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    const ended = children.find(({ exitCode }) => exitCode !== null)
    if (ended !== undefined || performance.now() > deadline)
      throw new Error(`it did not start: ${children.map((child) => output.get(child) ?? "").join("")}`)
    await wait(50)
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined) return
  const ended = child.exitCode === null ? once(child, "exit") : Promise.resolve()
  for (const [signal, ms] of [
    ["SIGTERM", STOP_MS],
    ["SIGKILL", STOP_MS],
  ] as const) {
    try {
      process.kill(-child.pid, signal)
    } catch {
      // The whole group has ended.
      break
    }
    await Promise.race([ended, wait(ms, undefined, { ref: false })])
  }
}

function versionOf(program: string, kind: ServerKind): string {
  const ofPackage = `from importlib.metadata import version; print(version("${kind.package}"))`
  const { stdout, stderr } = kind.pip
    ? spawnSync(join(program, "..", "python3"), ["-c", ofPackage], { encoding: "utf8" })
    : spawnSync(program, kind.version ?? [], { encoding: "utf8" })
  return /\d+(\.\d+)+/.exec(`${stdout}${stderr}`)?.[0] ?? "?"
}
