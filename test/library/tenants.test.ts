import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const OTHER = "org_2rTestTestTestTestTestTestTe"

test("two tenants with the same uids, names and keys know nothing of each other", async () => {
  const harness = await Harness.start()
  const other = harness.posthorn.tenant(OTHER)
  await harness.endpoint({}, "/ours")
  await other.applications.create({ uid: "acme", name: "The other Acme" })
  const theirs = await other.endpoints.create("acme", { url: harness.receiver.url("/theirs") })
  await harness.posthorn.policies.put("gentle", { delays: [60], maxAttempts: 2 })
  const mine = await harness.send({ whose: "ours" }, { idempotencyKey: "k", eventId: "e" })
  const message = { eventType: "a", payload: { whose: "theirs" }, idempotencyKey: "k", eventId: "e" }
  const sent = await other.send("acme", message)
  expect(sent.duplicate).toBe(false)
  await harness.published("delivery.delivered", 2)
  expect(harness.receiver.to("/ours").map(({ body }) => JSON.parse(`${body}`))).toEqual([{ whose: "ours" }])
  expect(harness.receiver.to("/theirs").map(({ body }) => JSON.parse(`${body}`))).toEqual([
    { whose: "theirs" },
  ])
  expect((await other.deliveries.list()).data.map(({ messageId }) => messageId)).toEqual([sent.id])
  expect((await other.attempts.list()).data.map(({ endpointId }) => endpointId)).toEqual([theirs.id])
  expect(await other.stats()).toMatchObject({ delivered: 1 })
  expect((await other.applications.list()).data.map(({ name }) => name)).toEqual(["The other Acme"])
  const [ours] = (await harness.posthorn.deliveries.list()).data
  const missing = { code: "not_found" }
  await expect(other.deliveries.get(ours!.id)).rejects.toMatchObject(missing)
  await expect(other.deliveries.retry(ours!.id)).rejects.toMatchObject(missing)
  await expect(other.applications.get(ours!.appId)).rejects.toMatchObject(missing)
  await expect(other.messages.get(ours!.appId, mine)).rejects.toMatchObject(missing)
  await expect(other.send(ours!.appId, { eventType: "a", payload: {} })).rejects.toMatchObject(missing)
  await expect(other.policies.get("gentle")).rejects.toMatchObject(missing)
  await expect(other.endpoints.update("acme", theirs.id, { retry: "gentle" })).rejects.toMatchObject({
    field: "retry",
  })
  const task = await harness.posthorn.dead.retryMany({})
  await expect(other.tasks.get(task.id)).rejects.toMatchObject(missing)
  await expect(other.tasks.cancel(task.id)).rejects.toMatchObject(missing)
  expect((await other.tasks.list()).data).toEqual([])
})

test("a policy by name is the tenant's own also when it changes", async () => {
  const harness = await Harness.start()
  const other = harness.posthorn.tenant(OTHER)
  await harness.posthorn.policies.put("ours", { delays: [60], maxAttempts: 2 })
  await other.policies.put("ours", { delays: [7], maxAttempts: 9 })
  const id = await harness.endpoint({ retry: "ours" })
  await other.policies.put("ours", { delays: [8], maxAttempts: 9 })
  expect((await harness.posthorn.endpoints.get("acme", id)).policy.maxAttempts).toBe(2)
  await other.policies.delete("ours")
  await expect(harness.posthorn.policies.delete("ours")).rejects.toMatchObject({ code: "conflict" })
})

test("a tenant's name is checked", async () => {
  const harness = await Harness.start()
  for (const name of ["acme", "org_", "org_a:b", `org_${"a".repeat(65)}`, 7 as never])
    expect(() => harness.posthorn.tenant(name)).toThrow(expect.objectContaining({ field: "organization" }))
})
