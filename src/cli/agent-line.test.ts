import { expect, test } from "vitest"
import { disconnectedText } from "./agent-line.ts"

const lost = (reason: string) => ({ reason, retryInMs: 1000 })

test("a lost connection is told with its reason, which may be a question, and once", () => {
  expect(disconnectedText(lost("the connection broke off"), "in 1s")).toBe(
    "Not connected: the connection broke off. The next try is in 1s.",
  )
  const asked = "wss://a was not found. Is it the address of a Posthorn server?"
  expect(disconnectedText(lost(asked), "in 1s")).toBe(`Not connected: ${asked} The next try is in 1s.`)
  expect(disconnectedText(lost(asked), "in 2s", asked)).toBe("Still not connected. The next try is in 2s.")
})
