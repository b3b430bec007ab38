import { expect, test } from "vitest"
import { sample } from "./conformance/samples.ts"
import { Recipients } from "./recipients.ts"

const subscriber = (id: string, eventTypes: string[] | null, channels: string[] | null = null) => ({
  id,
  url: "https://example.com",
  ordered: false,
  eventTypes,
  channels,
})
const recipients = new Recipients("app_1", [
  subscriber("all", null),
  subscriber("one", ["a"]),
  subscriber("both", ["a", "b"], ["x"]),
])
const of = (more: object) => recipients.of(sample.message("app_1", more)).map(({ id }) => id)

test("a message goes to endpoints with its type and one of its channels, or to the named endpoint", () => {
  for (let again = 0; again < 2; again++) {
    expect(of({ eventType: "a" })).toEqual(["all", "one"])
    expect(of({ eventType: "a", channels: ["x", "y"] })).toEqual(["all", "one", "both"])
    expect(of({ eventType: "b", channels: ["x"] })).toEqual(["all", "both"])
    expect(of({ eventType: "c" })).toEqual(["all"])
    expect(of({ eventType: "c", to: "both" })).toEqual(["both"])
  }
})

test("many event types do not mix up their lists", () => {
  for (let i = 0; i < 2500; i++) expect(of({ eventType: `other-${i}` })).toEqual(["all"])
  expect(of({ eventType: "a" })).toEqual(["all", "one"])
})
