/** The reference at /docs: paths in its navigation, a search, and an example for each call. */
import { expect, onTestFinished, test } from "vitest"
import { byTag, type OpenApi } from "../../src/api/docs/document.ts"
import { exampleAnswer, exampleRequest } from "../../src/api/docs/example.ts"
import { Receiver } from "../support/receiver.ts"
import { isOperators } from "./support/operations.ts"
import { filled } from "./support/sample.ts"
import { ApiServer } from "./support/server.ts"
import { fillTenant } from "./support/tenant.ts"

async function start() {
  const server = await ApiServer.start()
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as OpenApi
  const page = async (words: string | null = null) =>
    (await fetch(`${server.url}/docs${words === null ? "" : `?q=${encodeURIComponent(words)}`}`)).text()
  return { server, document, page, calls: [...byTag(document).values()].flat() }
}

const navigationOf = (page: string) => page.slice(page.indexOf("<nav>"), page.indexOf("</nav>"))
const callsIn = (page: string) =>
  [...page.matchAll(/<section class="call" id="([^"]+)"/g)].map(([, id]) => id)

test("the navigation has the method and path of each call", async () => {
  const { page, calls } = await start()
  const navigation = navigationOf(await page())
  for (const { id, method, path } of calls)
    expect(navigation).toMatch(
      new RegExp(`href="#${id}"[^>]*><span class="method">${method}</span>${path.replace("/api/v1", "")}<`),
    )
})

test("a search finds calls by path, by words and by the names of fields, and says when there are none", async () => {
  const { page, calls } = await start()
  expect(callsIn(await page())).toHaveLength(calls.length)
  const secrets = await page("endpoint/{endpoint_id}/secret")
  expect(callsIn(secrets)).toEqual(
    expect.arrayContaining(["v1.endpoint.get-secret", "v1.endpoint.rotate-secret"]),
  )
  expect(navigationOf(secrets)).not.toContain('href="#v1.message.create"')
  expect(callsIn(await page("POST Dead-Letter retry"))).toContain("v1.dead-letter.retry-many")
  expect(callsIn(await page("gracePeriodSeconds"))).toContain("v1.endpoint.rotate-secret")
  expect(callsIn(await page("deliverAt"))).toContain("v1.message.create")
  const none = await page('"><script>alert(1)</script>')
  expect(callsIn(none)).toEqual([])
  expect(none).toContain("Nothing was found")
  expect(none).not.toContain("<script")
  const anchors = [...secrets.matchAll(/href="#([^"]+)"/g)].map(([, anchor]) => anchor)
  for (const anchor of anchors) expect(secrets).toContain(`id="${anchor}"`)
})

test("a search that is too long or given twice is refused", async () => {
  const { server } = await start()
  for (const query of [`q=${"x".repeat(300)}`, "q=a&q=b", "x=1"])
    expect((await fetch(`${server.url}/docs?${query}`)).status).toBe(422)
})

test("each call has an example: a request that the server takes and an answer that it could give", async () => {
  const { server, document, page, calls } = await start()
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const { key, ids } = await fillTenant(server, receiver, { orgId: "org_docs", mark: "docs", suffix: "docs" })
  const html = await page()
  const contract = await server.contract
  const takesAway = ({ method }: { readonly method: string }) => Number(method === "DELETE")
  for (const call of calls.toSorted((a, b) => takesAway(a) - takesAway(b))) {
    const { path: shown, body } = exampleRequest(call, document)
    const { status, body: answer } = exampleAnswer(call, document)
    const path = filled(call.path, [ids.names])
    const text = answer === undefined ? "" : JSON.stringify(answer)
    // An example of JSON; a stream of events has none.
    if (call.id !== "v1.events.stream")
      contract.check(call.method, path, { status, type: "application/json", text })
    const sent = body === undefined ? {} : { body }
    const [, query] = shown.split("?")
    const address = path.replace("/api/v1", "") + (query === undefined ? "" : `?${query}`)
    const got = await server.call(call.method, address, {
      key: isOperators(call) ? server.key : key,
      ...sent,
    })
    // The example may name things that this tenant does not have, or that calls before this one have taken away. The key of the example of a session is nobody's.
    const refused = call.id === "v1.session.open" ? [401] : [400, 404, 409]
    expect(refused.includes(got.status) || got.status < 300, `${call.id}: ${got.text}`).toBe(true)
    const section = html.slice(html.indexOf(`<section class="call" id="${call.id}"`)).split("</section>")[0]!
    expect(section).toContain("curl")
    expect(section).toContain("Authorization: Bearer")
  }
})
