/** `/alert`, `/alert-rule`, `/alert-silence`, `/alert-settings` and `/alert-evaluation`, with an alert that really fires. */
import { expect, onTestFinished, test, vi } from "vitest"
import { Receiver } from "../support/receiver.ts"
import { ApiServer } from "./support/server.ts"

/** A server with a dead letter, and a rule that it breaks. */
async function start() {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  receiver.always("/bad", 400)
  const server = await ApiServer.start()
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  await server.posthorn.endpoints.create("acme", {
    url: receiver.url("/bad"),
    retry: { delays: [1], maxAttempts: 1 },
  })
  await server.posthorn.messages.send("acme", { eventType: "invoice.paid", payload: {} })
  const { dead } = server.posthorn
  await vi.waitUntil(async () => (await dead.list()).data.length === 1, 10_000)
  await server.call("PUT", "/alert-channel/ops", { body: { kind: "webhook", url: receiver.url("/ops") } })
  await server.call("PUT", "/alert-rule/dead-letters-count", { body: { count: 1, severity: "critical" } })
  const evaluate = async (times: number) => {
    for (let i = 0; i < times; i++) await server.posthorn.monitor!.runOnce()
  }
  const told = async (count: number) => {
    const requests = await receiver.arrived("/ops", count)
    return requests.map(({ body }) => {
      const { type, data } = JSON.parse(body.toString("utf8"))
      return `${type} ${data.rule}`
    })
  }
  return { server, evaluate, told }
}

test("an alert goes from pending over firing and acknowledged to resolved", async () => {
  const { server, evaluate, told } = await start()
  expect((await server.call("GET", "/alert-evaluation")).body).toEqual({
    evaluatedAt: null,
    ageSeconds: null,
  })
  await evaluate(1)
  expect((await server.call("GET", "/alert")).body.data).toMatchObject([
    { rule: "dead-letters-count", state: "pending", severity: "critical", subject: null },
  ])
  expect((await server.call("GET", "/alert-evaluation")).body.ageSeconds).toBeLessThan(15)
  await evaluate(1)
  expect(await told(1)).toEqual(["alert.firing dead-letters-count"])
  const [alert] = (await server.call("GET", "/alert?state=firing")).body.data
  expect(alert).toMatchObject({ name: "1 dead letter", channels: ["ops"], acknowledgedAt: null })
  expect((await server.call("GET", "/alert?rule=oldest-due")).body.data).toEqual([])

  const { token, id } = await server.posthorn.keys.create({ name: "night shift", scope: "admin" })
  const acknowledged = await server.call("POST", `/alert/${alert.id}/acknowledge`, { key: token })
  expect(acknowledged.body).toMatchObject({ state: "acknowledged", acknowledgedBy: id })

  await server.call("PUT", "/alert-rule/dead-letters-count", { body: { count: 2 } })
  await evaluate(2)
  expect(await told(2)).toEqual(["alert.firing dead-letters-count", "alert.resolved dead-letters-count"])
  expect((await server.call("GET", `/alert/${alert.id}`)).body).toMatchObject({
    state: "resolved",
    channels: [],
    detail: "the value is below its limit again",
  })
  expect(await server.call("POST", `/alert/${alert.id}/acknowledge`)).toMatchObject({
    status: 409,
    body: { detail: `alert ${alert.id} is resolved; only a firing alert can be acknowledged` },
  })
})

test("a silence withholds the notification of a rule, and its end releases it", async () => {
  const { server, evaluate, told } = await start()
  const body = { rule: "dead-letters-count", seconds: 3600, reason: "a load test" }
  const { body: silence, status } = await server.call("POST", "/alert-silence", { body })
  expect([status, silence]).toMatchObject([201, { rule: "dead-letters-count", reason: "a load test" }])
  await evaluate(2)
  expect((await server.call("GET", "/alert")).body.data).toMatchObject([
    { state: "silenced", silenceId: silence.id, channels: [] },
  ])
  expect((await server.call("GET", "/alert-silence")).body.data).toEqual([silence])
  expect((await server.call("DELETE", `/alert-silence/${silence.id}`)).status).toBe(204)
  await evaluate(1)
  expect(await told(1)).toEqual(["alert.firing dead-letters-count"])
})

test("a rule is read, replaced and given its defaults again", async () => {
  const { server } = await start()
  const rule = "/alert-rule/dead-letters-count"
  expect((await server.call("GET", rule)).body).toMatchObject({
    severity: "critical",
    thresholds: { count: 1 },
    isChanged: true,
  })
  expect((await server.call("DELETE", rule)).body).toMatchObject({
    severity: "warning",
    thresholds: { count: 1000 },
    isChanged: false,
  })
  const { data } = (await server.call("GET", "/alert-rule")).body
  expect(data.filter(({ isChanged }: { isChanged: boolean }) => isChanged)).toEqual([])
  expect((await server.call("PATCH", "/alert-settings", { body: { repeatHours: 8 } })).body).toEqual({
    repeatHours: 8,
    notificationsPerHour: 20,
  })
  expect((await server.call("GET", "/alert-settings")).body.repeatHours).toBe(8)
})

test.each([
  ["PUT", "/alert-rule/dead-letters-count", { count: -1 }, 422, /count/],
  ["PUT", "/alert-rule/dead-letters-count", { minutes: 5 }, 422, /minutes/],
  ["PUT", "/alert-rule/dead-letters-count", { channels: ["nobody"] }, 422, /channels.*nobody/s],
  ["PUT", "/alert-rule/dead-letters", { count: 1 }, 422, /rule_id.*dead-letters-count/s],
  ["POST", "/alert-silence", { rule: "nothing", seconds: 60 }, 422, /rule/],
  ["POST", "/alert-silence", { rule: "retry-share", seconds: 0 }, 422, /seconds/],
  ["PATCH", "/alert-settings", { repeatHours: 0 }, 422, /repeatHours/],
  ["GET", "/alert?state=loud", undefined, 422, /state/],
  ["GET", "/alert/alert_nobody", undefined, 404, /alert_nobody/],
] as const)("%s %s %j is refused with %i and the field", async (method, path, body, status, field) => {
  const server = await ApiServer.start()
  const answer = await server.call(method, path, body === undefined ? {} : { body })
  expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(field)])
})
