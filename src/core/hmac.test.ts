import { createHmac } from "node:crypto"
import fc from "fast-check"
import { expect, test } from "vitest"
import { HmacKey } from "./hmac.ts"

const theirs = (key: Uint8Array, text: string, bytes: Uint8Array) =>
  createHmac("sha256", key).update(text).update(bytes).digest("base64")

test("it is what createHmac makes, of any key, text and bytes", () => {
  const bytes = (maxLength: number) => fc.uint8Array({ maxLength })
  fc.assert(
    fc.property(bytes(64), fc.string({ unit: "binary" }), bytes(2000), (key, text, body) => {
      expect(new HmacKey(key).sign(text, body)).toBe(theirs(key, text, body))
    }),
  )
})

test.each([16_256, 16_320, 16_321, 100_000])("also of %i bytes, and of few after many", (length) => {
  const key = new HmacKey(Buffer.from("a key"))
  const long = Buffer.alloc(length, "x")
  for (const body of [long, Buffer.from("short")])
    expect(key.sign("id.", body)).toBe(theirs(Buffer.from("a key"), "id.", body))
})

test("a key that would have to be hashed first is refused", () => {
  expect(() => new HmacKey(Buffer.alloc(65))).toThrow("65 bytes")
})
