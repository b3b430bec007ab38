/** The list of workers: which are alive, and which lanes they own. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

test("the process that delivers is listed with the lanes and deliveries that it holds", async () => {
  const harness = await Harness.start()
  await harness.endpoint({}, "/slow")
  const answer = harness.receiver.hold("/slow")
  await harness.send()
  await harness.receiver.arrived("/slow", 1)
  await harness.calm()
  const [worker, ...others] = await harness.posthorn.workers.list()
  expect(others).toEqual([])
  expect(worker).toMatchObject({
    name: expect.stringContaining(String(process.pid)),
    alive: true,
    lanes: 1,
    inHand: 1,
  })
  const other = await harness.posthorn.tenant("org_other").workers.list()
  expect(other).toMatchObject([{ alive: true, lanes: 0, inHand: 0 }])
  answer(200)
  await harness.published("delivery.delivered", 1)
})

test("a worker that has stopped is not alive, and a process that does not deliver is no worker", async () => {
  const harness = await Harness.start()
  await harness.close()
  const posthorn = await harness.open({ deliver: false })
  expect((await posthorn.workers.list()).filter(({ alive }) => alive)).toEqual([])
  await harness.restart()
  expect(await harness.posthorn.workers.list()).toMatchObject([{ alive: true }])
})
