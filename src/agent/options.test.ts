import { expect, test } from "vitest"
import { parseOptions } from "./options.ts"

const GIVEN = {
  server: "wss://hooks.example.com",
  key: "ph_1_x",
  name: "hub",
  forward: "http://localhost:3000",
}

test("the defaults", () => {
  expect(parseOptions(GIVEN)).toMatchObject({
    credit: 16,
    ca: null,
    maxFrameBytes: 8_388_608,
    closeTimeoutMs: 30_000,
    handler: new URL("http://localhost:3000"),
  })
})

test.each([
  ["key", "", "key must be one word of visible ASCII characters, such as ph_…"],
  ["key", "two words", "key must be one word"],
  ["name", "Hub", "name must be 1 to 63 characters of a-z, 0-9 and -: the NAME of relay://NAME"],
  ["name", undefined, "name must be 1 to 63 characters"],
  ["server", undefined, "server must be a URL such as"],
  ["credit", 0, "credit must be a whole number between 1 and 16"],
  ["credit", 17, "credit must be a whole number between 1 and 16"],
  ["ca", "ca.pem", "ca must be certificates as PEM"],
  ["forward", "localhost:3000", "forward must be a URL such as http://localhost:3000"],
  ["forward", "http://user@localhost", "forward must be a URL such as"],
  ["forward", undefined, "handle or forward must be given, and not both"],
  ["handle", () => "success", "handle or forward must be given, and not both"],
  ["maxFrameBytes", 1000, "maxFrameBytes must be a whole number between 65536 and 100663296"],
  ["closeTimeoutMs", -1, "closeTimeoutMs must be a whole number between 0 and 3600000"],
  ["logger", "loud", "logger must be a pino logger or one of"],
  ["onHandled", 17, "onHandled must be a function"],
  ["retries", 3, "options.retries is unknown; known are server, key, name"],
])("%s %j is refused", (field, value, message) => {
  const options = { ...GIVEN, [field]: value } as never
  expect(() => parseOptions(options)).toThrow(expect.objectContaining({ code: "invalid_input" }))
  expect(() => parseOptions(options)).toThrow(message)
})

test("a handler that is no function is refused", () => {
  const { forward: _forward, ...others } = GIVEN
  expect(() => parseOptions({ ...others, handle: "success" as never })).toThrow("handle must be a function")
})
