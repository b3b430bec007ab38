/** Payloads in responses. */
import { expect, test } from "vitest"
import type { Message } from "../../resources/messages.ts"
import { serialize } from "../raw-json.ts"
import { messageOut } from "./views.ts"

const shown = (contentType: string, text: string) => {
  const payload = new TextEncoder().encode(text)
  const message = { contentType, payload, channels: [], tags: [], metadata: {} } as unknown as Message
  return JSON.parse(serialize(messageOut(message, { content: true }).payload))
}

test("JSON is shown as it is, and the rest in base 64", () => {
  expect(shown("application/json", '{"n":1}')).toEqual({ n: 1 })
  expect(shown("text/plain", "hi")).toEqual({ contentType: "text/plain", base64: "aGk=" })
})

test("a raw payload that only says it is JSON can be read all the same", () => {
  expect(shown("application/json", "hi")).toEqual({ contentType: "application/json", base64: "aGk=" })
})
