import { expect, test } from "vitest"
import { signedHandshake, unsignedHandshake } from "./handshake.ts"
import { receivedRequest } from "./received-request.ts"

const request = (changes: { method?: string; query?: string; body?: string } = {}) =>
  receivedRequest({
    ...{ method: "POST", path: "", query: "", headers: [] },
    ...changes,
    body: Buffer.from(changes.body ?? ""),
  })

const META = "?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=meatyhamhock"

test("Meta's challenge is answered for the right token, and refused for another", () => {
  const ask = (query: string, token: string | null, method = "GET") =>
    unsignedHandshake("meta", request({ method, query }), token)
  expect(ask(META, "meatyhamhock")).toEqual({ answer: "1158201444" })
  expect(ask(META, "other")).toEqual({ answer: null })
  expect(ask(META, null)).toEqual({ answer: null })
  expect(ask("?hub.mode=subscribe&hub.challenge=1", null)).toEqual({ answer: null })
  expect(ask("?hub.mode=subscribe&hub.verify_token=meatyhamhock", "meatyhamhock")).toEqual({ answer: null })
  expect(ask("?hub.mode=unsubscribe", "meatyhamhock")).toBeNull()
  expect(ask(META, "meatyhamhock", "POST")).toBeNull()
})

test("Microsoft Graph's token is answered decoded, and not if it is endless", () => {
  const ask = (query: string) => unsignedHandshake("microsoft-graph", request({ query }), null)
  expect(ask("?validationToken=Validation%3A+Testing%20client+%3Cb%3E")).toEqual({
    answer: "Validation: Testing client <b>",
  })
  expect(ask(`?validationToken=${"x".repeat(2048)}`)).toEqual({ answer: "x".repeat(2048) })
  expect(ask(`?validationToken=${"x".repeat(2049)}`)).toEqual({ answer: null })
  expect(ask("?validationToken=")).toEqual({ answer: null })
  expect(ask("?other=1")).toBeNull()
})

test("Slack's challenge is answered, and ordinary events are none", () => {
  const ask = (body: string) => signedHandshake("slack", request({ body }))
  const verification = { token: "Jhj5dZrVaK7ZwHHjRyZWjbDl", challenge: "3eZbrw1aB", type: "url_verification" }
  expect(ask(JSON.stringify(verification))).toEqual({ answer: "3eZbrw1aB" })
  expect(ask(JSON.stringify({ ...verification, challenge: 5 }))).toEqual({ answer: null })
  expect(ask(JSON.stringify({ ...verification, challenge: "x".repeat(2049) }))).toEqual({ answer: null })
  for (const body of [
    "",
    "null",
    "[]",
    "5",
    '"url_verification"',
    "payload=%7B%7D",
    '{"type":"event_callback"}',
  ])
    expect(ask(body), body).toBeNull()
})

test("a source without a handshake, or with another, takes these requests as webhooks", () => {
  for (const handshake of [null, "slack"] as const) {
    const graph = request({ method: "GET", query: `${META}&validationToken=x` })
    expect(unsignedHandshake(handshake, graph, "meatyhamhock")).toBeNull()
  }
  const slack = request({ body: '{"type":"url_verification","challenge":"x"}' })
  for (const handshake of [null, "meta", "microsoft-graph"] as const)
    expect(signedHandshake(handshake, slack)).toBeNull()
})
