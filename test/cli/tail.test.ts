/** `posthorn tail`: the live events of a server or a store, line by line. */

import type { AddressInfo } from "node:net"
import { connect, createServer, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { openPosthorn } from "../../src/posthorn.ts"
import { LOOPBACK } from "../support/harness.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { Desk } from "./posthorn.ts"
import { World } from "./world.ts"

const PATIENCE = { timeout: 120_000 }
const WAITING = "Waiting for events; Ctrl-C ends it.\n"

test("each event is a line, and Ctrl-C ends it", PATIENCE, async () => {
  const world = await World.start()
  const tail = world.desk.start(["tail"])
  await tail.said(WAITING)
  const id = await world.send("invoice.paid")
  await tail.wrote(new RegExp(`delivery.delivered .*${id}`))
  await world.send("fails")
  await tail.wrote(/delivery\.dead .* dead \(exhausted\) after attempt 1: HTTP 500: answer 500$/)
  tail.interrupt()
  const { code, stdout, stderr } = await tail.ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: WAITING })
  expect(stdout).not.toContain("\x1b")
  const what = `ep_\\w+ {2}${id} {2}invoice.paid`
  expect(tail.lines.filter((line) => line.includes(id))).toEqual([
    expect.stringMatching(new RegExp(`Z {2}delivery.attempt +${what} {2}attempt 1: HTTP 200 in \\d+ ms$`)),
    expect.stringMatching(new RegExp(`Z {2}delivery.delivered +${what} {2}delivered by attempt 1$`)),
  ])
})

test("filters narrow it, --json has the API's fields, and colours are for terminals", PATIENCE, async () => {
  const world = await World.start()
  const json = world.desk.start([
    "tail",
    "--app",
    "acme",
    "--endpoint",
    "main",
    "--kind",
    "delivery.delivered",
    "--json",
  ])
  const coloured = world.desk.start(["tail", "--kind", "delivery.delivered"], { FORCE_COLOR: "1" })
  await coloured.said(WAITING)
  // It says nothing on standard error: a first event that arrives shows that it listens.
  const ids: string[] = []
  while (json.lines.length === 0) {
    ids.push(await world.send("invoice.paid"))
    await coloured.wrote(new RegExp(ids.at(-1)!))
  }
  expect(JSON.parse(json.lines[0]!)).toMatchObject({
    id: expect.stringMatching(/^[0-9a-f]{12}-1-\d+$/),
    type: "delivery.delivered",
    message_id: expect.stringMatching(/^msg_/),
  })
  expect(coloured.lines[0]).toContain("\x1b[32mdelivery.delivered")
})

/** A server in front of the server, whose connections a test cuts. */
async function throughProxy(url: string) {
  const sockets = new Set<Socket>()
  const { port, hostname } = new URL(url)
  const proxy = createServer((socket) => {
    const onward = connect(Number(port), hostname)
    for (const one of [socket, onward])
      sockets.add(one.on("error", () => {}).on("close", () => sockets.delete(one)))
    socket.pipe(onward)
    onward.pipe(socket)
  })
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(() => {
    cut()
    proxy.close()
  })
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, cut }
}

test("after a lost connection it goes on where it was", PATIENCE, async () => {
  const world = await World.start()
  const proxy = await throughProxy(world.server.url)
  const tail = world.desk.start(["tail", "--server", proxy.url, "--kind", "delivery.delivered"])
  await tail.said(WAITING)
  const ids = [await world.send("invoice.paid")]
  await tail.wrote(new RegExp(ids[0]!))
  proxy.cut()
  ids.push(await world.send("invoice.paid"), await world.send("invoice.paid"))
  await tail.said("The connection was lost")
  await tail.said("Connected again")
  for (const id of ids) await tail.wrote(new RegExp(id))
  tail.interrupt()
  await tail.ended
  for (const id of ids) expect(tail.lines.filter((line) => line.includes(id))).toHaveLength(1)
  expect(tail.lines.join("\n")).not.toContain("missing")
})

test("a server that refuses the key ends it", PATIENCE, async () => {
  const world = await World.start()
  const { token, id } = await world.server.posthorn.keys.create({ name: "tail", scope: "read" })
  const proxy = await throughProxy(world.server.url)
  const tail = world.desk.start(["tail", "--server", proxy.url, "--key", token])
  await tail.said(WAITING)
  await world.server.posthorn.keys.revoke(id)
  proxy.cut()
  expect(await tail.ended).toMatchObject({ code: 1, stderr: expect.stringMatching(/revoked/) })
})

test("mistakes are told before anything is followed", PATIENCE, async () => {
  const { desk } = await World.start()
  for (const [args, said] of [
    [["--kind", "delivery.lost"], "--kind must be one of delivery.dead, "],
    [["--app", "nobody"], 'there is no application "nobody"'],
    [["--endpoint", "main"], "--endpoint must be an endpoint's id"],
    [["--server", "http://127.0.0.1:1"], "cannot be reached"],
  ] as const)
    expect(await desk.posthorn(["tail", ...args])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(said),
    })
})

test("on a SQLite file it says whom to ask, on PostgreSQL it follows all processes", PATIENCE, async () => {
  const desk = new Desk()
  await desk.posthorn(["apps", "create", "Acme", "--uid", "acme"])
  expect(await desk.posthorn(["tail"])).toEqual({
    code: 1,
    stdout: "",
    stderr:
      "posthorn: this process does not deliver, and on SQLite only the process that delivers sees the events: ask its server, with --server URL\n",
  })
  const store = await migratedDatabase()
  const posthorn = await openPosthorn({ store, egress: LOOPBACK, logger: "silent", closeTimeoutMs: 0 })
  onTestFinished(() => posthorn.close())
  const tail = desk.start(["tail", "--store", store])
  await tail.said(WAITING)
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { uid: "main", url: "http://127.0.0.1:1/" })
  await posthorn.endpoints.pause("acme", "main")
  // The process that delivers passes its events on when it has heard that another one listens.
  while (tail.lines.length === 0) {
    const { id } = await posthorn.send("acme", { eventType: "a", payload: 1 })
    const [delivery] = (await posthorn.deliveries.list({ message: id })).data
    await posthorn.deliveries.cancel(delivery!.id)
  }
  expect(tail.lines[0]).toMatch(/delivery\.dead .* dead \(cancelled\)/)
  tail.interrupt()
  expect(await tail.ended).toMatchObject({ code: 0, stderr: WAITING })
})
