/** Whose connections are whose: each belongs to one endpoint, and is used again by that endpoint alone. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"
import { OPEN } from "./canary.ts"
import { Authority } from "./certificates.ts"
import { Site } from "./site.ts"

const opened = () => Harness.start({ egress: { allow: [`${OPEN}/32`], ports: "any" } })

test("two endpoints at one receiver each show their own client certificate", async () => {
  const authority = new Authority()
  const asks = { requestCert: true, rejectUnauthorized: true, ca: authority.cert }
  const site = await Site.start({ tls: { ...authority.certificate("x", { names: `IP:${OPEN}` }), ...asks } })
  const harness = await opened()
  for (const name of ["acme", "globex"]) {
    const client = authority.certificate(name, { names: `DNS:${name}.example` })
    await harness.endpoint({
      url: site.url(`/${name}`),
      eventTypes: [name],
      tls: { ...client, ca: authority.cert },
    })
  }
  let sent = 0
  for (const eventType of ["acme", "globex", "acme", "globex"]) {
    await harness.send({}, { eventType })
    await harness.published("delivery.delivered", ++sent)
  }
  expect(site.visits.map(({ path, client }) => [path, client])).toEqual([
    ["/acme", "acme"],
    ["/globex", "globex"],
    ["/acme", "acme"],
    ["/globex", "globex"],
  ])
  expect(site.connections).toBe(2)
})

test("two endpoints at one receiver share no connection, and each uses its own again", async () => {
  const site = await Site.start()
  const harness = await opened()
  for (const name of ["acme", "globex"]) await harness.endpoint({ url: site.url(), eventTypes: [name] })
  let sent = 0
  for (const eventType of ["acme", "globex", "acme", "globex"]) {
    await harness.send({}, { eventType })
    await harness.published("delivery.delivered", ++sent)
  }
  expect(site.connections).toBe(2)
})

test("an endpoint uses its connection again, however much of an attempt its token took", async () => {
  const [site, tokens] = [await Site.start(), await Site.start()]
  const harness = await opened()
  let token = 0
  tokens.answer = (_visit, response) => {
    // The margin of a minute leaves no more of a token than a second.
    harness.clock.advance(7 * token)
    response.end(JSON.stringify({ access_token: `token-${++token}`, expires_in: 61 }))
  }
  const auth = { type: "oauth2", tokenUrl: tokens.url(), clientId: "a", clientSecret: "b" } as const
  await harness.endpoint({ url: site.url(), auth })
  for (let sent = 1; sent <= 3; sent++) {
    await harness.send()
    await harness.published("delivery.delivered", sent)
    harness.clock.advance(1000)
  }
  expect(tokens.visits).toHaveLength(3)
  expect([site.connections, tokens.connections]).toEqual([1, 1])
})

test("a changed endpoint leaves the connection to its token server too", async () => {
  const site = await Site.start()
  const harness = await opened()
  const gone = Promise.withResolvers<void>()
  const tokens = await Site.start()
  tokens.answer = (_visit, response) => {
    response.socket!.once("close", gone.resolve)
    // Else it would be idle for too long in four seconds, and dropped for that.
    response.setHeader("keep-alive", "timeout=300")
    response.end('{"access_token":"a"}')
  }
  const auth = { type: "oauth2", tokenUrl: tokens.url(), clientId: "a", clientSecret: "b" } as const
  const id = await harness.endpoint({ url: site.url(), auth })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.posthorn.endpoints.delete("acme", id)
  await gone.promise
})
