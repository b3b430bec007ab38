/** An endpoint's ed25519 private key goes in and never comes out: every way of reading gives the public key. */
import { generateKeyPairSync } from "node:crypto"
import { expect, onTestFinished, test } from "vitest"
import { verifySignature } from "../../src/index.ts"
import { Desk } from "../cli/posthorn.ts"
import { Receiver } from "../support/receiver.ts"
import { ApiServer } from "./support/server.ts"

function keyPair() {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(-32).toString("base64")
  const point = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64")
  return { seed, secret: `whsk_${seed}`, shown: `whpk_${point}` }
}

async function start() {
  const server = await ApiServer.start()
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const portal = await posthorn.keys.create({ name: "portal", scope: "application", appId: "acme" })
  const pair = keyPair()
  const url = receiver.url("/")
  await posthorn.endpoints.create("acme", { uid: "one", url, secret: pair.secret })
  return { server, receiver, posthorn, portal: portal.token, ...pair }
}

test("the API, the library and the command line show the public key, which verifies", async () => {
  const { server, receiver, posthorn, portal, shown } = await start()
  expect(await posthorn.endpoints.secret("acme", "one")).toEqual({ key: shown })
  for (const key of [server.key, portal])
    expect(await server.call("GET", "/app/acme/endpoint/one/secret", { key })).toMatchObject({
      status: 200,
      body: { key: shown },
    })
  const desk = new Desk({ POSTHORN_SERVER: server.url, POSTHORN_API_KEY: server.key })
  expect(await desk.posthorn(["endpoints", "secret", "acme", "one"])).toMatchObject({ stdout: `${shown}\n` })
  await posthorn.send("acme", { eventType: "a", payload: 1 })
  const [received] = await receiver.arrived("/", 1)
  verifySignature(shown, received!.headers, received!.body)
})

test("a key that may set a private key reads the public one back", async () => {
  const { server, portal } = await start()
  const path = "/app/acme/endpoint/one"
  const next = keyPair()
  const rotated = await server.call("POST", `${path}/secret/rotate`, {
    key: portal,
    body: { key: next.secret },
  })
  expect(rotated.status).toBeLessThan(300)
  expect(rotated.text).not.toContain(next.seed)
  expect((await server.call("GET", `${path}/secret`, { key: portal })).body).toEqual({ key: next.shown })
})

test("operational endpoints show the public key too", async () => {
  const { server, receiver } = await start()
  const pair = keyPair()
  const made = await server.call("POST", "/operational-webhook/endpoint", {
    body: { url: receiver.url("/told"), secret: pair.secret },
  })
  expect(made.status).toBe(201)
  const path = `/operational-webhook/endpoint/${made.body.id}/secret`
  expect((await server.call("GET", path)).body).toEqual({ key: pair.shown })
})

test("no answer to any reading call of an admin has the private key in it", async () => {
  const { server, receiver, posthorn, seed } = await start()
  const { id } = await posthorn.send("acme", { eventType: "a", payload: 1 })
  await receiver.arrived("/", 1)
  const names: { readonly [name: string]: string } = { app_id: "acme", endpoint_id: "one", msg_id: id }
  const { body: document } = await server.call("GET", "/openapi.json")
  const readable = Object.entries(document.paths as { [path: string]: object })
    .filter(([, operations]) => "get" in operations)
    .map(([path]) => path.replace(/^\/api\/v1/, "").replace(/\{(\w+)\}/g, (all, name) => names[name] ?? all))
    .filter((path) => !path.includes("{"))
    // A stream of events has no end, and no event has a key.
    .filter((path) => path !== "/events")
  expect(readable).toContain("/app/acme/endpoint/one/secret")
  expect(readable.length).toBeGreaterThan(20)
  for (const path of readable) {
    const response = await fetch(`${server.url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${server.key}` },
    })
    expect(await response.text(), path).not.toContain(seed)
  }
  expect((await server.call("POST", "/environment/export")).text).not.toContain(seed)
})
