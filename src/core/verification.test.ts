/** Each scheme against what its provider documents, and against the provider's own library. */
import { createHmac } from "node:crypto"
import { sign as signGithub } from "@octokit/webhooks-methods"
import fc from "fast-check"
import { Webhook as StandardWebhook } from "standardwebhooks"
import Stripe from "stripe"
import { Webhook as SvixWebhook } from "svix"
import { expect, test } from "vitest"
import { parseVerification, type VerificationInput } from "./parse-verification.ts"
import { verify } from "./verification.ts"
import { READY_SCHEMES, schemeOf } from "./verification-schemes.ts"

type Headers = { readonly [name: string]: string }

interface Vector {
  readonly name: string
  readonly verification: VerificationInput
  readonly secret: string
  readonly headers: Headers
  readonly body: string
  /** When the request was signed; null: it has no time. */
  readonly at: number | null
  /** The body is not signed. */
  readonly isToken?: true
}

const BYTES = Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64")
const RFC_4231 =
  "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
const hmacOf = (algorithm: string, key: string | Buffer, content: string, encoding: "hex" | "base64") =>
  createHmac(algorithm, key).update(content).digest(encoding)

/** Documented by the provider, if not said otherwise. */
const VECTORS: readonly Vector[] = [
  {
    name: "Standard Webhooks",
    verification: "standard-webhooks",
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    headers: {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    body: '{"test": 2432232314}',
    at: 1614265330,
  },
  {
    name: "Svix",
    verification: "svix",
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    headers: {
      "svix-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "svix-timestamp": "1614265330",
      "svix-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    body: '{"test": 2432232314}',
    at: 1614265330,
  },
  {
    name: "Svix's headers, as Standard Webhooks",
    verification: "standard-webhooks",
    secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    headers: {
      "Svix-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "Svix-Timestamp": "1614265330",
      "Svix-Signature": "v2,x v1,bm90IHRoaXMgb25l v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    body: '{"test": 2432232314}',
    at: 1614265330,
  },
  {
    name: "GitHub",
    verification: "github",
    secret: "It's a Secret to Everybody",
    headers: {
      "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    },
    body: "Hello, World!",
    at: null,
  },
  {
    name: "Slack",
    verification: "slack",
    secret: "8f742231b10e8888abcd99yyyzzz85a5",
    headers: {
      "X-Slack-Request-Timestamp": "1531420618",
      "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    body:
      "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V" +
      "&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
      "&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
      "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    at: 1531420618,
  },
  {
    // Shopify documents the computation alone; the value is OpenSSL's.
    name: "Shopify",
    verification: "shopify",
    secret: "test-webhook-secret",
    headers: { "X-Shopify-Hmac-SHA256": "QNyObTlKbMx2qDlPF/ZOZcBqg5OgPg+2oky3zldc0Gw=" },
    body: '{"id":1234567890,"email":"customer@example.com","total_price":"123.45"}',
    at: null,
  },
  {
    // Stripe documents the form of the header.
    name: "Stripe",
    verification: "stripe",
    secret: "whsec_test_secret",
    headers: {
      "Stripe-Signature": `t=1492774577,v1=${hmacOf("sha256", "whsec_test_secret", '1492774577.{"id":"evt_1"}', "hex")},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39`,
    },
    body: '{"id":"evt_1"}',
    at: 1492774577,
  },
  {
    name: "GitLab",
    verification: "gitlab",
    secret: "s3cret-token",
    headers: { "X-Gitlab-Token": "s3cret-token" },
    body: "{}",
    at: null,
    isToken: true,
  },
  {
    name: "basic authentication (RFC 7617)",
    verification: "basic",
    secret: "Aladdin:open sesame",
    headers: { Authorization: "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" },
    body: "",
    at: null,
    isToken: true,
  },
  {
    name: "a bearer token (RFC 6750)",
    verification: "bearer",
    secret: "mF_9.B5f-4.1JqM",
    headers: { Authorization: "bearer mF_9.B5f-4.1JqM" },
    body: "",
    at: null,
    isToken: true,
  },
  {
    name: "a token in a header of its own",
    verification: { scheme: "token", header: "X-Hook-Key", prefix: "key " },
    secret: "abc",
    headers: { "x-hook-key": "Key abc" },
    body: "",
    at: null,
    isToken: true,
  },
  {
    name: "an HMAC of SHA-1 (RFC 2202, case 2)",
    verification: { scheme: "hmac", header: "X-Sig", algorithm: "sha1" },
    secret: "Jefe",
    headers: { "x-sig": "EFFCDF6AE5EB2FA2D27416D5F184DF9C259A7C79" },
    body: "what do ya want for nothing?",
    at: null,
  },
  {
    name: "an HMAC of SHA-512 (RFC 4231, case 2), in base64",
    verification: { scheme: "hmac", header: "X-Sig", algorithm: "sha512", encoding: "base64", prefix: "s=" },
    secret: "Jefe",
    headers: { "x-sig": `s=${Buffer.from(RFC_4231, "hex").toString("base64")}` },
    body: "what do ya want for nothing?",
    at: null,
  },
  {
    name: "an HMAC over id, time and body",
    verification: {
      scheme: "hmac",
      header: "X-Sig",
      idHeader: "X-Id",
      timestampHeader: "X-Time",
      content: "{timestamp}|{id}|{body}|end",
      secretEncoding: "base64",
      toleranceSeconds: 60,
    },
    secret: BYTES.toString("base64"),
    headers: {
      "X-Id": "{timestamp}",
      "X-Time": "1700000000",
      "X-Sig": hmacOf("sha256", BYTES, "1700000000|{timestamp}|body|end", "hex"),
    },
    body: "body",
    at: 1_700_000_000,
  },
]

const pairs = (headers: Headers) => Object.entries(headers)

function check(
  vector: Vector,
  changes: Partial<Vector> & { readonly secrets?: string[]; now?: number } = {},
) {
  const { verification, secret, headers, body, at } = { ...vector, ...changes }
  const { secrets = [secret], now = at ?? 0 } = changes
  const scheme = schemeOf(parseVerification(verification))
  return verify(scheme, secrets, { headers: pairs(headers), body: Buffer.from(body) }, now)
}

test.each(VECTORS)("$name: a signature that is right is accepted, with any of several secrets", (vector) => {
  expect(check(vector)).toBeNull()
  const other = vector.verification === "basic" ? "a:b" : "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx"
  expect(check(vector, { secrets: [other, vector.secret] })).toBeNull()
  expect(check(vector, { secrets: [vector.secret, other] })).toBeNull()
  expect(check(vector, { secrets: [other] })).toBe("mismatch")
})

test.each(VECTORS)("$name: a signature that is changed, cut, prolonged or missing is refused", (vector) => {
  const scheme = schemeOf(parseVerification(vector.verification))
  if (scheme.kind === "none") throw new Error("nothing to refuse")
  const wanted = scheme.kind === "hmac" ? scheme.signatureHeaders : [scheme.header]
  const [name, value] = pairs(vector.headers).find(([one]) => wanted.includes(one.toLowerCase()))!
  const digits = value.replace(
    /[A-Za-z0-9]([^A-Za-z0-9]*(,v0=\w+)?)$/,
    (all, end) => `${all[0] === "a" ? "b" : "a"}${end}`,
  )
  expect(digits).not.toBe(value)
  for (const wrong of [digits, value.slice(0, -1), "", "=", ",", `${value.slice(0, 8)},`])
    if (!wrong.includes(value.replace(/,v0=.*/, "")))
      expect(check(vector, { headers: { ...vector.headers, [name]: wrong } }), wrong).not.toBeNull()
  const { [name]: _, ...others } = vector.headers
  expect(check(vector, { headers: others })).toBe("missing")
  expect(check(vector, { headers: {} })).toBe("missing")
})

test.each(
  VECTORS.filter(({ isToken }) => !isToken),
)("$name: a body with one byte changed, more or less is refused", (vector) => {
  const bytes = Buffer.from(vector.body)
  for (const i of [0, bytes.length >> 1, bytes.length - 1]) {
    const changed = Buffer.from(bytes)
    changed[i]! ^= 1
    expect(check(vector, { body: changed.toString() })).toBe("mismatch")
  }
  expect(check(vector, { body: `${vector.body}\n` })).toBe("mismatch")
  expect(check(vector, { body: vector.body.slice(1) })).toBe("mismatch")
})

test.each(
  VECTORS.filter(({ at }) => at !== null),
)("$name: an old time is refused, and one ahead", (vector) => {
  const at = vector.at!
  const { verification } = vector
  const toleranceSeconds = typeof verification === "string" ? 300 : verification.toleranceSeconds!
  for (const now of [at - toleranceSeconds, at + toleranceSeconds]) expect(check(vector, { now })).toBeNull()
  for (const now of [at - toleranceSeconds - 1, at + toleranceSeconds + 1])
    expect(check(vector, { now })).toBe("timestamp")
})

test("a tolerance of the source's own holds instead of the scheme's", () => {
  const vector = VECTORS.find(({ name }) => name === "Stripe")!
  const verification = { scheme: "stripe", toleranceSeconds: 10 } as const
  expect(check(vector, { verification, now: vector.at! + 10 })).toBeNull()
  expect(check(vector, { verification, now: vector.at! + 11 })).toBe("timestamp")
})

test("a time that is signed and is no number is refused", () => {
  const vector = VECTORS.find(({ name }) => name === "Slack")!
  for (const time of ["", "now", "-1531420618", "1531420618.5", "1e9", " 1531420618", "0x5b479a8a"]) {
    const signature = `v0=${hmacOf("sha256", vector.secret, `v0:${time}:x`, "hex")}`
    const headers = { "x-slack-request-timestamp": time, "x-slack-signature": signature }
    expect(check(vector, { headers, body: "x" }), time).toBe("timestamp")
  }
})

test("more signatures than a provider sends are not compared", () => {
  const vector = VECTORS.find(({ name }) => name === "Standard Webhooks")!
  const right = vector.headers["webhook-signature"]!
  const list = (before: number) => [...Array(before).fill("v1,eA=="), right].join(" ")
  expect(check(vector, { headers: { ...vector.headers, "webhook-signature": list(15) } })).toBeNull()
  expect(check(vector, { headers: { ...vector.headers, "webhook-signature": list(16) } })).toBe("mismatch")
})

test("the scheme none accepts everything", () => {
  expect(verify({ kind: "none" }, [], { headers: [], body: Buffer.of() }, 0)).toBeNull()
})

const NOW = 1_790_000_000
const BODIES = fc.string({ unit: "binary", maxLength: 200 })

test("what the provider's own library signs is accepted, and not with one byte changed", async () => {
  const whsec = `whsec_${BYTES.toString("base64")}`
  await fc.assert(
    fc.asyncProperty(BODIES, fc.nat(), async (text, n) => {
      const body = text === "" ? "x" : text
      const time = new Date(NOW * 1000)
      const signed: readonly (readonly [VerificationInput & string, string, Headers])[] = [
        [
          "standard-webhooks",
          whsec,
          {
            "webhook-id": "msg_1",
            "webhook-timestamp": `${NOW}`,
            "webhook-signature": new StandardWebhook(whsec).sign("msg_1", time, body),
          },
        ],
        [
          "svix",
          whsec,
          {
            "svix-id": "msg_1",
            "svix-timestamp": `${NOW}`,
            "svix-signature": new SvixWebhook(whsec).sign("msg_1", time, body),
          },
        ],
        [
          "stripe",
          "whsec_1",
          {
            "stripe-signature": Stripe.webhooks.generateTestHeaderString({
              payload: body,
              secret: "whsec_1",
              timestamp: NOW,
            }),
          },
        ],
        ["github", "s", { "x-hub-signature-256": await signGithub("s", body) }],
      ]
      const changed = Buffer.from(body)
      changed[n % changed.length]! ^= 1 << (n % 8)
      for (const [verification, secret, headers] of signed) {
        const scheme = schemeOf(parseVerification(verification))
        const request = { headers: pairs(headers), body: Buffer.from(body) }
        expect(verify(scheme, [secret], request, NOW), verification).toBeNull()
        expect(verify(scheme, [secret], { ...request, body: changed }, NOW), verification).toBe("mismatch")
      }
    }),
    { numRuns: 30 },
  )
})

test("no header makes it throw, or accepts without the secret", () => {
  const names = VECTORS.flatMap(({ headers }) => Object.keys(headers))
  const value = fc.oneof(
    fc.string({ unit: "binary", maxLength: 100 }),
    fc.stringMatching(/^(t=\d{1,10}|v[01][=,][a-f0-9+/=]{0,64}|sha256=|Basic |[ ,=])*$/),
  )
  const headers = fc.array(fc.tuple(fc.constantFrom(...names), value), { maxLength: 6 })
  fc.assert(
    fc.property(headers, BODIES, fc.constantFrom(...READY_SCHEMES), (given, body, name) => {
      const request = { headers: given, body: Buffer.from(body) }
      const verdict = verify(schemeOf({ scheme: name }), ["k:9f8e7d6c5b4a39281706f5e4d3c2b1a0"], request, NOW)
      expect(verdict === null).toBe(name === "none")
    }),
  )
})
