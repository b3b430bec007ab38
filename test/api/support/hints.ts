/** Values that schemas say too little about: without them, hardly any request would get past the first check. */
import fc, { type Arbitrary } from "fast-check"
import type { Hints } from "./arbitraries.ts"

const DAY_MS = 86_400_000

const days = (from: number, to: number) =>
  fc.integer({ min: from, max: to }).map((n) => new Date(Date.now() + n * DAY_MS).toISOString())
const maybe = (fields: Hints) => fc.record(fields, { requiredKeys: [] })
const orNull = (values: Arbitrary<unknown>) => fc.option(values)

/** Nothing leaves the machine, and nobody listens there. */
const urls = fc.constantFrom("http://127.0.0.1:9/", "http://127.0.0.1:9/ü?a=b#c", "HTTP://127.0.0.1:9")
const printable = fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 30 })
const secrets = fc
  .uint8Array({ minLength: 24, maxLength: 64 })
  .map((bytes) => `whsec_${Buffer.from(bytes).toString("base64")}`)
/** Long, so that no endpoint keeps the machine busy. */
const seconds = fc.integer({ min: 60, max: 31_536_000 })
const formula = fc.record({ strategy: fc.constantFrom("exponential", "linear", "fixed"), base: seconds })
const policies = fc.record(
  {
    delays: fc.oneof(fc.array(seconds, { minLength: 1, maxLength: 20 }), formula),
    maxAttempts: fc.integer({ min: 1, max: 100_000 }),
    maxAge: fc.integer({ min: 1, max: 315_360_000 }),
    jitter: fc.constantFrom("none", "full", [0, 10], [0.5, 1.5]),
    retryable: fc.constantFrom("non-2xx", "transient", "5xx"),
    retention: maybe({ delivered: fc.constant("never"), dead: fc.record({ after: seconds }) }),
  },
  { requiredKeys: ["delays", "maxAttempts"] },
)
const webhooks = fc.dictionary(
  fc.stringMatching(/^[a-z.]{1,9}$/),
  fc.record({
    post: maybe({ description: fc.string(), requestBody: fc.object(), deprecated: fc.boolean() }),
  }),
)

export const HINTS: Hints = {
  PolicyIn: policies,
  retry: orNull(fc.oneof(fc.constantFrom("standard", "gateway", "relay"), policies)),
  url: urls,
  secret: orNull(secrets),
  key: orNull(secrets),
  headers: fc.dictionary(fc.stringMatching(/^x-[a-z]{1,9}$/), printable),
  transformationsParams: orNull(
    maybe({
      rawPayload: fc.string({ unit: "binary" }),
      headers: fc.record({ "content-type": fc.constantFrom("application/json", "text/plain") }),
    }),
  ),
  version: fc.constantFrom(null, 1),
  tls: fc.constant(null),
  auth: orNull(
    fc.oneof(
      fc.record({ type: fc.constant("bearer"), token: printable }),
      fc.record({
        type: fc.constant("oauth2"),
        tokenUrl: urls,
        clientId: printable,
        clientSecret: printable,
      }),
    ),
  ),
  since: days(-10, -1),
  until: days(0, 10),
  deliverAt: orNull(days(-10, 10)),
  spec: fc.record({ webhooks }),
  specRaw: fc.oneof(
    webhooks.map((one) => JSON.stringify({ webhooks: one })),
    fc.string({ unit: "binary" }),
  ),
}
