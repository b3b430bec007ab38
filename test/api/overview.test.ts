/** `GET /overview`. */
import { expect, onTestFinished, test } from "vitest"
import { HEALTH_STATES } from "../../src/core/health.ts"
import { Receiver } from "../support/receiver.ts"
import { ApiServer } from "./support/server.ts"

test("an operator sees the whole store at one look, also with a key that only reads", async () => {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  const { applications, endpoints, keys } = server.posthorn
  const { id: appId } = await applications.create({ uid: "acme", name: "Acme" })
  const { id: endpointId } = await endpoints.create("acme", { url: receiver.url("/") })
  await endpoints.pause("acme", endpointId)
  await server.posthorn.send("acme", { eventType: "a", payload: {} })
  const { token: key } = await keys.create({ name: "reader", scope: "read" })
  const { status, body } = await server.call("GET", "/overview", { key })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    deliveries: { due: 0, scheduled: 0, retrying: 0, held: 1 },
    oldestDue: null,
    endpoints: { ...Object.fromEntries(HEALTH_STATES.map((state) => [state, 0])), paused: 1 },
    troubled: [{ endpointId, appId, appName: "Acme", url: receiver.url("/"), health: "paused", waiting: 1 }],
    deadLetters: [],
    attempts: [],
  })
  expect(Date.parse(body.at)).toBeGreaterThanOrEqual(Date.parse(body.surveyedAt))
  expect(body.hours).toHaveLength(24)
  const times = body.hours.map(({ hour }: { hour: string }) => Date.parse(hour))
  expect(times.at(-1)).toBe(Date.parse(body.at) - (Date.parse(body.at) % 3_600_000))
  expect(times.every((time: number, n: number) => n === 0 || time - times[n - 1] === 3_600_000)).toBe(true)
})

test("it belongs to the deployment: keys of other organizations and of applications are refused", async () => {
  const server = await ApiServer.start()
  const { id: appId } = await server.posthorn.applications.create({ name: "Acme" })
  const other = server.posthorn.tenant("org_2rTestTestTestTestTestTestTe")
  const keys = [
    await server.posthorn.keys.create({ name: "a", scope: "application", appId }),
    await other.keys.create({ name: "b", scope: "admin" }),
  ]
  for (const { token: key } of keys) expect((await server.call("GET", "/overview", { key })).status).toBe(403)
})
