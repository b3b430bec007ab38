/** A redirect is an answer, never a way to somewhere else. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"
import { Canary, OPEN } from "./canary.ts"
import { Site } from "./site.ts"

const METADATA = "http://169.254.169.254/latest/meta-data/"
const guarded = () => Harness.start({ egress: { allow: [`${OPEN}/32`] } })

test.each([301, 302, 303, 307, 308])("a redirect (%i) is a failure and is not followed", async (status) => {
  const canary = await Canary.start()
  const site = await Site.start()
  const places = [canary.url(), canary.url("[::1]"), METADATA, "file:///etc/passwd", site.url("/elsewhere")]
  site.answer = ({ path }, response) => {
    response.writeHead(status, { location: places[Number(path.slice(1))] }).end()
  }
  const harness = await guarded()
  for (const index of places.keys()) await harness.endpoint({ url: site.url(`/${index}`) })
  await harness.send()
  for (const attempt of await harness.published("delivery.attempt", places.length))
    expect(attempt).toMatchObject({ success: false, response_status: status })
  await harness.quiet()
  expect(site.visits.map(({ path }) => path).sort()).toEqual(["/0", "/1", "/2", "/3", "/4"])
  for (const row of await harness.rows()) expect(row).toMatchObject({ status: "failed", attempt_count: 1 })
})

test("the recorded attempt says where a redirect pointed", async () => {
  const site = await Site.start()
  site.answer = (_visit, response) => void response.writeHead(302, { location: METADATA }).end()
  const harness = await guarded()
  await harness.endpoint({ url: site.url() })
  await harness.send()
  await harness.published("delivery.attempt", 1)
  expect((await harness.rows())[0]?.error_detail).toContain(METADATA)
})
