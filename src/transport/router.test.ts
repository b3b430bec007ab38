import { expect, test } from "vitest"
import { fullAddress } from "../core/input.ts"
import { TransportRouter } from "./router.ts"
import type { OutboundRequest, SchemeTransport, TransportResult } from "./transport.ts"

const REFUSED = "must be a full http://, https:// or relay:// address"

/** A transport that records its calls and has one request in flight. */
function fake(name: string, schemes: readonly string[], calls: string[]): SchemeTransport {
  const record = (call: string) => void calls.push(`${name} ${call}`)
  return {
    schemes,
    urlProblem: async (url) => `${name} refuses ${url}`,
    send: async ({ url }) => {
      record(url)
      return { detail: name } as TransportResult
    },
    reachOf:
      ({ id }) =>
      () =>
        id === name ? "busy" : "open",
    forget: (endpointId) => record(`forgets ${endpointId}`),
    interrupt: () => 1,
    close: async () => record("closes"),
  }
}

function start() {
  const calls: string[] = []
  const router = new TransportRouter([
    fake("http", ["http:", "https:"], calls),
    fake("relay", ["relay:"], calls),
  ])
  const send = (url: string) => router.send({ url } as OutboundRequest)
  return { calls, router, send }
}

test("a request goes to the transport of its URL's scheme", async () => {
  const { calls, router, send } = start()
  const urls = ["http://a.example/", "https://b.example/x:y", "relay://agent"]
  for (const url of urls) await send(url)
  expect(calls).toEqual(["http http://a.example/", "http https://b.example/x:y", "relay relay://agent"])
  expect(router.schemes).toEqual(["http:", "https:", "relay:"])
})

test("a URL that an operator wrote into the database by hand may have its scheme in capitals", async () => {
  const { send } = start()
  expect(await send(" HTTPS://b.example/")).toMatchObject({ detail: "http" })
})

test.each([
  "ftp://a.example/",
  "a.example",
  "",
  "mailto:a@example.com",
])("a request to %j is a failed attempt that no transport sees", async (url) => {
  const { calls, send } = start()
  expect(await send(url)).toMatchObject({ outcome: { kind: "failure", cause: "target_forbidden" } })
  expect(calls).toEqual([])
})

test("a URL of an unknown scheme is refused with the list of schemes, any other is checked by its transport", async () => {
  const { router } = start()
  expect(await router.urlProblem("ftp://a.example/")).toBe(REFUSED)
  expect(await router.urlProblem("relay://agent")).toBe("relay refuses relay://agent")
})

test("the refusal names one, two or more schemes", () => {
  expect(fullAddress(["https:"])).toBe("must be a full https:// address")
  expect(fullAddress(["http:", "https:"])).toBe("must be a full http:// or https:// address")
  expect(fullAddress(["http:", "https:", "relay:"])).toBe(REFUSED)
})

test("forgetting an endpoint, interrupting and closing reach every transport", async () => {
  const { calls, router } = start()
  router.forget("ep_1")
  expect(router.interrupt()).toBe(2)
  await router.close()
  expect(calls).toEqual(["http forgets ep_1", "relay forgets ep_1", "http closes", "relay closes"])
})
