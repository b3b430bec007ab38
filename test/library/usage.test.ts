import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const URL = "https://example.com/hook"

test("figures are kept as a task that is finished, and more than one page of endpoints is counted", async () => {
  const { posthorn, clock } = await Harness.start({ deliver: false })
  const { applications, endpoints, usage, tasks } = posthorn
  await applications.create({ uid: "acme", name: "Acme" })
  for (let i = 0; i < 501; i++) await endpoints.create("acme", { url: URL, disabled: i % 2 === 1 })
  expect(await usage.endpoints()).toEqual({ active: 251, disabled: 250 })
  expect(await usage.activeApplications()).toBe(1)
  await posthorn.send("acme", { eventType: "a", payload: 1 })
  const span = { since: clock.now() - 1, until: clock.now() + 1 }
  const { task } = await usage.applications(span)
  expect(task).toMatchObject({
    status: "finished",
    type: "application.stats",
    data: { appStats: [{ appUid: "acme", messageDestinations: 251, messages: 1 }] },
  })
  expect(await tasks.get(task.id)).toEqual(task)
  expect((await tasks.list({ status: "finished", type: "application.stats" })).data).toEqual([task])
  expect((await tasks.list({ status: "running" })).data).toEqual([])
})

test("an invalid query is refused with the name of the parameter", async () => {
  const { posthorn } = await Harness.start({ deliver: false })
  const { usage, tasks } = posthorn
  const bad = (query: object, field: string) =>
    expect(usage.applications(query as never)).rejects.toMatchObject({ field })
  await bad({ until: 5 }, "since")
  await bad({ since: 5 }, "until")
  await bad({ since: 5, until: 4 }, "until")
  await bad({ since: 5, until: 6, appIds: ["nobody"] }, "appIds")
  await expect(tasks.list({ status: "done" as never })).rejects.toMatchObject({ field: "status" })
  await expect(tasks.list({ colour: "red" } as never)).rejects.toMatchObject({ field: "colour" })
})
