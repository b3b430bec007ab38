import { expect, test } from "vitest"
import { parseVerification, requireSecret } from "./parse-verification.ts"

test("a name stands for a ready scheme, and is stored as fields", () => {
  expect(parseVerification("github")).toEqual({ scheme: "github" })
  expect(parseVerification({ scheme: "slack", toleranceSeconds: 60 })).toEqual({
    scheme: "slack",
    toleranceSeconds: 60,
  })
})

test("an HMAC of one's own has the defaults of most providers, and header names in lower case", () => {
  expect(parseVerification({ scheme: "hmac", header: "X-Signature" })).toEqual({
    scheme: "hmac",
    header: "x-signature",
    format: "plain",
    prefix: "",
    algorithm: "sha256",
    encoding: "hex",
    content: "{body}",
    secretEncoding: "utf8",
    toleranceSeconds: 300,
  })
})

const HMAC = { scheme: "hmac", header: "x" }

test.each([
  [undefined, "verification"],
  ["hmac", "verification"],
  ["nobody", "verification"],
  [{ scheme: "nobody" }, "verification.scheme"],
  [{ scheme: "github", toleranceSeconds: 60 }, "verification.toleranceSeconds"],
  [{ scheme: "stripe", toleranceSeconds: 0 }, "verification.toleranceSeconds"],
  [{ scheme: "stripe", header: "x" }, "verification.header"],
  [{ scheme: "hmac" }, "verification.header"],
  [{ scheme: "hmac", header: "a b" }, "verification.header"],
  [{ scheme: "token" }, "verification.header"],
  [{ ...HMAC, algorithm: "md5" }, "verification.algorithm"],
  [{ ...HMAC, content: "{id}" }, "verification.content"],
  [{ ...HMAC, content: "{body}{body}" }, "verification.content"],
  [{ ...HMAC, content: "{id}.{body}" }, "verification.content"],
  [{ ...HMAC, content: "{timestamp}.{body}" }, "verification.content"],
  [{ ...HMAC, idHeader: "x-id" }, "verification.content"],
  [{ ...HMAC, timestampHeader: "x-time" }, "verification.content"],
  [{ ...HMAC, format: "pairs", prefix: "v1" }, "verification.content"],
  [{ ...HMAC, format: "versions" }, "verification.prefix"],
  [
    { ...HMAC, format: "pairs", prefix: "v1", timestampHeader: "x-time", content: "{timestamp}{body}" },
    "verification.timestampHeader",
  ],
])("%j is refused at %s", (input, field) => {
  expect(() => parseVerification(input)).toThrow(expect.objectContaining({ code: "invalid_input", field }))
})

test.each([
  ["github", ""],
  ["github", 5],
  ["github", "x".repeat(513)],
  ["none", "x"],
  ["basic", "nobody"],
  ["basic", ":empty"],
  ["gitlab", "two words"],
  ["standard-webhooks", "whsec_!"],
  ["svix", "whsec_"],
] as const)("the scheme %s cannot verify with the secret %j", (scheme, secret) => {
  const refused = expect.objectContaining({ code: "invalid_input", field: "secret" })
  expect(() => requireSecret(secret, { scheme })).toThrow(refused)
})
