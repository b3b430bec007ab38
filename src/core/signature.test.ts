import { createPrivateKey, generateKeyPairSync, randomBytes } from "node:crypto"
import { Webhook } from "standardwebhooks"
import { expect, test } from "vitest"
import { PosthornError } from "./errors.ts"
import {
  encodeSecret,
  parseSigningKey,
  signatureHeader,
  verificationKeyOf,
  verifySignature,
} from "./signature.ts"

const NOW = Date.now()
const secret = encodeSecret(randomBytes(32))
const body = Buffer.from('{"hello":"wörld"}')

function headersFor(secrets: string[], bytes: Uint8Array, seconds = Math.floor(NOW / 1000)) {
  return {
    "webhook-id": "msg_1",
    "webhook-timestamp": String(seconds),
    "webhook-signature": signatureHeader(
      secrets.map((one) => parseSigningKey(one)),
      "msg_1",
      seconds,
      bytes,
    ),
  }
}

function ed25519Secret(): string {
  const { privateKey } = generateKeyPairSync("ed25519")
  const der = createPrivateKey(privateKey.export({ format: "pem", type: "pkcs8" }) as string).export({
    format: "der",
    type: "pkcs8",
  })
  return `whsk_${der.subarray(-32).toString("base64")}`
}

test("the standardwebhooks library verifies what we sign, and we verify what it signs", () => {
  const theirs = new Webhook(secret)
  expect(theirs.verify(body.toString(), headersFor([secret], body))).toEqual({ hello: "wörld" })
  const signed = theirs.sign("msg_1", new Date(NOW), body.toString())
  const headers = {
    "Webhook-Id": "msg_1",
    "Webhook-Timestamp": String(Math.floor(NOW / 1000)),
    "Webhook-Signature": signed,
  }
  expect(() => verifySignature(secret, headers, body, { nowMs: NOW })).not.toThrow()
})

test("during a rotation the old and the new secret both verify", () => {
  const newer = encodeSecret(randomBytes(24))
  const headers = headersFor([newer, secret], body)
  for (const one of [newer, secret]) {
    expect(() => verifySignature(one, headers, body, { nowMs: NOW })).not.toThrow()
    expect(() => new Webhook(one).verify(body.toString(), headers)).not.toThrow()
  }
  expect(() => verifySignature(encodeSecret(randomBytes(32)), headers, body, { nowMs: NOW })).toThrow(
    PosthornError,
  )
})

test("ed25519 signs as v1a beside v1, and its public key verifies", () => {
  const asymmetric = ed25519Secret()
  const headers = headersFor([asymmetric, secret], body)
  expect(headers["webhook-signature"]).toMatch(/^v1a,\S+ v1,\S+$/)
  const publicKey = verificationKeyOf(asymmetric)
  expect(publicKey).toMatch(/^whpk_/)
  expect(() => verifySignature(publicKey, headers, body, { nowMs: NOW })).not.toThrow()
  expect(() => verifySignature(secret, headers, body, { nowMs: NOW })).not.toThrow()
  expect(() => verifySignature(verificationKeyOf(ed25519Secret()), headers, body, { nowMs: NOW })).toThrow(
    /no signature fits/,
  )
})

test("svix headers and a Headers object are read too", () => {
  const headers = headersFor([secret], body)
  const svix = new Headers(
    Object.entries(headers).map(
      ([name, value]) => [name.replace("webhook", "svix"), value] as [string, string],
    ),
  )
  expect(() => verifySignature(secret, svix, body, { nowMs: NOW })).not.toThrow()
})

test("binary bodies are signed byte for byte", () => {
  const bytes = Buffer.from([0, 255, 128, 10, 13])
  expect(() => verifySignature(secret, headersFor([secret], bytes), bytes, { nowMs: NOW })).not.toThrow()
})

test.each([
  [
    "a changed body",
    () => verifySignature(secret, headersFor([secret], body), Buffer.from("{}"), { nowMs: NOW }),
    "webhook-signature",
  ],
  [
    "an old timestamp",
    () => verifySignature(secret, headersFor([secret], body, 1000), body, { nowMs: NOW }),
    "webhook-timestamp",
  ],
  ["a missing header", () => verifySignature(secret, { "webhook-id": "x" }, body), "webhook-timestamp"],
  [
    "junk",
    () => verifySignature(secret, { ...headersFor([secret], body), "webhook-timestamp": "soon" }, body),
    "webhook-timestamp",
  ],
])("%s is refused and the field named", (_what, verify, field) => {
  expect(verify).toThrow(expect.objectContaining({ code: "signature_invalid", field }))
})

test.each([
  "",
  "secret",
  "whsec_",
  "whsec_!!!",
  "whsec_c2hvcnQ=",
  "whsk_c2hvcnQ=",
])("the secret %j is refused", (bad) => {
  expect(() => parseSigningKey(bad)).toThrow(
    expect.objectContaining({ code: "invalid_input", field: "secret" }),
  )
})

test.each([
  ["a parsed body", () => verifySignature(secret, headersFor([secret], body), {} as never), "body"],
  [
    "no secret",
    () => verifySignature(undefined as never, headersFor([secret], body), body, { nowMs: NOW }),
    "secret",
  ],
  [
    "a public key that is none",
    () => verifySignature("whpk_abc", headersFor([secret], body), body, { nowMs: NOW }),
    "secret",
  ],
])("%s is the caller's mistake, and named", (_what, verify, field) => {
  expect(verify).toThrow(expect.objectContaining({ code: "invalid_input", field }))
})
