import { expect, test } from "vitest"
import { type ListenFlags, type Types, typesFor } from "./listen-flags.ts"

const GITHUB = { header: "x-github-event" }

test.each<[flags: ListenFlags, types: Types]>([
  [{}, { eventType: "inbound", eventTypes: ["inbound"] }],
  [{ type: "push" }, { eventType: "push", eventTypes: ["push"] }],
  [{ verify: "github" }, { eventType: GITHUB, eventTypes: null }],
  [
    { verify: "github", only: ["push"] },
    { eventType: GITHUB, eventTypes: ["push"] },
  ],
  [{ verify: "basic" }, { eventType: "inbound", eventTypes: ["inbound"] }],
  [{ app: "acme" }, { eventType: "inbound.listen-1", eventTypes: ["inbound.listen-1"] }],
  [
    { app: "acme", verify: "github" },
    { eventType: "inbound.listen-1", eventTypes: ["inbound.listen-1"] },
  ],
  [
    { app: "acme", type: { pointer: "/type" }, only: ["a", "b"] },
    { eventType: { pointer: "/type" }, eventTypes: ["a", "b"] },
  ],
])("%j listens to %j", (flags, types) => {
  expect(typesFor("listen-1", flags)).toEqual(types)
})

test.each<[flags: ListenFlags, problem: string]>([
  [{ only: ["push"] }, "--only needs the event type of each webhook"],
  [{ only: ["push"], type: "push" }, "--only needs the event type of each webhook"],
  [{ only: ["push"], app: "acme", verify: "github" }, "--only needs the event type of each webhook"],
  [{ app: "acme", type: GITHUB }, "--type with --app needs --only"],
])("%j is refused", (flags, problem) => {
  expect(() => typesFor("listen-1", flags)).toThrow(problem)
})
