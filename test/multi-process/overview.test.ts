/** The overview with several processes on one PostgreSQL: the leader saves it, and each of the others answers with it. */
import type { AddressInfo } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { createServer } from "../../src/api/server.ts"
import { createLogger } from "../../src/observe/log.ts"
import type { Posthorn } from "../../src/posthorn.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { open, Site } from "./site.ts"

async function serve(posthorn: Posthorn): Promise<string> {
  const app = createServer(posthorn, {
    logger: createLogger("silent"),
    maxPayloadBytes: 1_048_576,
    maxRequests: 100,
    closeTimeoutMs: 1000,
  })
  onTestFinished(() => app.close())
  await app.listen({ port: 0, host: "127.0.0.1" })
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/api/v1/overview`
}

test("a process that is not the leader, and one that does not deliver, answer with the leader's overview", async () => {
  const place = { store: await migratedDatabase() }
  const site = await Site.open(place)
  const { token } = await site.sender.keys.create({ name: "operator", scope: "admin" })
  const ask = async (url: string) => {
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const onlyApi = await serve(site.sender)
  // Nobody delivers yet: nothing is known.
  expect(await ask(onlyApi)).toMatchObject({ status: 200, body: { surveyedAt: null, troubled: [] } })

  site.receiver.always("/bad", 400)
  const id = await site.endpoint("bad", { retry: { delays: [1], maxAttempts: 1, breaker: false } })
  const [leader, other] = [await open(place), await open(place)]
  const dead = new Promise<void>((resolve) => leader.on("delivery.dead", () => resolve()))
  await site.send("bad")
  await dead
  await leader.monitor!.runOnce()
  await other.monitor!.runOnce()
  expect([leader, other].map(({ monitor }) => monitor!.isLeader)).toEqual([true, false])
  for (const url of [await serve(leader), await serve(other), onlyApi]) {
    const { body } = await ask(url)
    expect(body).toMatchObject({
      surveyedAt: expect.any(String),
      endpoints: { degraded: 1 },
      troubled: [{ endpointId: id, appName: "Acme", waiting: 0 }],
      deadLetters: [{ reason: "exhausted", count: 1 }],
      attempts: [{ number: 1, attempts: 1, succeeded: 0 }],
    })
    expect((body.hours as { dead: number }[]).reduce((sum, hour) => sum + hour.dead, 0)).toBe(1)
  }
})
