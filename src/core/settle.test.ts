import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { AttemptOutcome, Outcome } from "./outcome.ts"
import { parsePolicy } from "./parse-policy.ts"
import { DEAD_REASONS, type Policy } from "./policy.ts"
import { PRESETS } from "./presets.ts"
import { isOverdue, type LiveDelivery, MOST_STALLS, settle } from "./settle.ts"

const NOW = 1_900_000_000_000
const DAY = 86_400_000

const fresh: LiveDelivery = {
  status: "pending",
  attemptCount: 0,
  maxAttempts: null,
  receivedAt: NOW - 1000,
  ageFrom: NOW - 1000,
  nextRetryAt: NOW - 1000,
  lastAttemptedAt: null,
  stalls: 0,
}

const response = (status: number, retryAfter: string | null = null): AttemptOutcome => ({
  kind: "response",
  status,
  excerpt: "body",
  retryAfter,
})
const settled = (
  delivery: Partial<LiveDelivery>,
  outcome: Outcome,
  policy: Policy = PRESETS.gateway,
  random = () => 0.5,
) => settle({ ...fresh, ...delivery }, outcome, policy, NOW, random)

describe("an attempt that succeeds", () => {
  test.each([
    200, 201, 202, 204, 226, 299,
  ])("%i delivers, counts the attempt and clears the error", (status) => {
    const change = settled({ status: "failed", attemptCount: 3 }, response(status))
    expect(change).toMatchObject({
      status: "delivered",
      attemptCount: 4,
      deliveredAt: NOW,
      nextRetryAt: null,
      lastAttemptedAt: NOW,
      errorDetail: null,
      deadReason: null,
    })
  })
})

describe("what is retried", () => {
  const statuses = [
    301, 302, 304, 307, 400, 401, 404, 408, 409, 410, 422, 425, 429, 499, 500, 502, 503, 504, 599,
  ]
  const rejectedBy: { [rule: string]: (status: number) => boolean } = {
    "non-2xx": () => false,
    transient: (status) => status >= 400 && status < 500 && ![408, 425, 429].includes(status),
    "5xx": (status) => status >= 400 && status < 500,
  }
  for (const retryable of ["non-2xx", "transient", "5xx"] as const) {
    test.each(statuses)(`${retryable}: HTTP %i`, (status) => {
      const policy = parsePolicy({ delays: [10], maxAttempts: 5, retryable, gone: false })
      const change = settled({}, response(status), policy)
      if (rejectedBy[retryable]!(status)) {
        expect(change).toMatchObject({
          status: "dead",
          deadReason: "rejected",
          attemptCount: 1,
          nextRetryAt: null,
        })
      } else {
        expect(change).toMatchObject({
          status: "failed",
          deadReason: null,
          attemptCount: 1,
          nextRetryAt: NOW + 10_000,
        })
      }
      expect(change.errorDetail).toBe(`HTTP ${status}: body`)
    })
    test(`${retryable}: a network failure`, () => {
      const policy = parsePolicy({ delays: [10], maxAttempts: 5, retryable })
      expect(settled({}, { kind: "failure", cause: "timeout" }, policy)).toMatchObject({
        status: "failed",
        errorDetail: "timeout",
      })
    })
  }
})

describe("how it ends", () => {
  test("the last attempt exhausts it", () => {
    expect(settled({ attemptCount: 4 }, response(500))).toMatchObject({
      status: "dead",
      deadReason: "exhausted",
      attemptCount: 5,
    })
  })

  test("a message's own limit goes before the policy's, both ways", () => {
    expect(settled({ attemptCount: 1, maxAttempts: 2 }, response(500)).deadReason).toBe("exhausted")
    expect(settled({ attemptCount: 4, maxAttempts: 10 }, response(500)).status).toBe("failed")
  })

  test("410 ends it and disables the endpoint, where the policy says so", () => {
    expect(settled({}, response(410), PRESETS.standard)).toMatchObject({
      status: "dead",
      deadReason: "gone",
      disableEndpoint: true,
    })
    expect(settled({}, response(410), PRESETS.gateway)).toMatchObject({
      status: "failed",
      disableEndpoint: false,
    })
  })

  test("its age ends it at the failure that comes too late", () => {
    const old = { ageFrom: NOW - 7 * DAY, attemptCount: 30 }
    expect(settled(old, response(500), PRESETS.relay)).toMatchObject({
      status: "dead",
      deadReason: "expired",
      attemptCount: 31,
    })
    expect(settled({ ...old, ageFrom: NOW - 7 * DAY + 1 }, response(500), PRESETS.relay).status).toBe(
      "failed",
    )
  })

  test("no retry is set beyond the end of its age", () => {
    const change = settled({ ageFrom: NOW - 7 * DAY + 5000, attemptCount: 30 }, response(500), PRESETS.relay)
    expect(change).toMatchObject({ status: "failed", nextRetryAt: NOW + 5000 })
    const due = { ...fresh, attemptCount: 31, ageFrom: change.ageFrom, nextRetryAt: change.nextRetryAt }
    expect(isOverdue(due, PRESETS.relay, NOW + 4999, NOW)).toBe(false)
    expect(isOverdue(due, PRESETS.relay, NOW + 5000, NOW)).toBe(true)
  })

  test("one that was held when its age ended gets its attempt, however old, and one that was not does not", () => {
    const held = { ...fresh, ageFrom: NOW - 30 * DAY, nextRetryAt: NOW - 25 * DAY }
    for (const nextRetryAt of [null, NOW - 25 * DAY, NOW - 23 * DAY, NOW]) {
      const delivery = { ...held, nextRetryAt }
      expect(isOverdue(delivery, PRESETS.relay, NOW, NOW - 23 * DAY)).toBe(false)
      expect(isOverdue(delivery, PRESETS.relay, NOW, NOW)).toBe(false)
      expect(isOverdue(delivery, PRESETS.relay, NOW, NOW - 23 * DAY - 1)).toBe(true)
    }
    expect(settled(held, response(500), PRESETS.relay).deadReason).toBe("expired")
    expect(settled(held, response(200), PRESETS.relay).status).toBe("delivered")
  })

  test("overdue and cancelled end it without an attempt and leave the last error standing", () => {
    expect(settled({ attemptCount: 3 }, { kind: "overdue" })).toMatchObject({
      deadReason: "expired",
      attemptCount: 3,
      errorDetail: null,
    })
    expect(settled({ attemptCount: 3 }, { kind: "cancelled" })).toMatchObject({
      deadReason: "cancelled",
      attemptCount: 3,
    })
  })
})

describe("what is not an attempt", () => {
  test("an interruption changes nothing", () => {
    const delivery = {
      status: "failed",
      attemptCount: 2,
      nextRetryAt: NOW - 5,
      lastAttemptedAt: NOW - 99,
    } as const
    expect(settled(delivery, { kind: "interrupted" })).toMatchObject({
      ...delivery,
      deadReason: null,
      stalls: 0,
    })
  })

  test("a fault of our own is set back, later each time, and set aside in the end", () => {
    const fault: Outcome = { kind: "fault", detail: "it broke" }
    const delays = [0, 1, 2, 3].map(
      (stalls) => settled({ stalls, attemptCount: 2 }, fault).nextRetryAt! - NOW,
    )
    expect(delays).toEqual([2000, 4000, 8000, 16_000])
    expect(settled({ attemptCount: 2 }, fault)).toMatchObject({
      status: "pending",
      attemptCount: 2,
      stalls: 1,
    })
    expect(settled({ stalls: MOST_STALLS - 1 }, fault)).toMatchObject({
      status: "dead",
      deadReason: "error",
      errorDetail: "it broke",
    })
  })

  test("a finished attempt wipes out its stalls", () => {
    expect(settled({ stalls: 3 }, response(500)).stalls).toBe(0)
  })
})

describe("Retry-After", () => {
  test("holds the lane, and the delivery is never earlier than the schedule", () => {
    const policy = parsePolicy({ delays: [60], maxAttempts: 5 })
    expect(settled({}, response(429, "100"), policy)).toMatchObject({
      nextRetryAt: NOW + 100_000,
      holdLaneUntil: NOW + 100_000,
    })
    expect(settled({}, response(503, "5"), policy)).toMatchObject({
      nextRetryAt: NOW + 60_000,
      holdLaneUntil: NOW + 5000,
    })
  })

  test("means nothing on other statuses, or where the policy ignores it", () => {
    expect(settled({}, response(500, "100"), PRESETS.standard, () => 0.5)).toMatchObject({
      holdLaneUntil: null,
      nextRetryAt: NOW + 5000,
    })
    expect(settled({}, response(429, "100"), PRESETS.gateway)).toMatchObject({
      holdLaneUntil: null,
      nextRetryAt: NOW + 30_000,
    })
  })
})

describe("relay acknowledgements", () => {
  test("success, permanent and transient", () => {
    const ack = (result: "success" | "permanent" | "transient"): Outcome => ({
      kind: "ack",
      result,
      detail: "agent says",
    })
    expect(settled({}, ack("success")).status).toBe("delivered")
    expect(settled({}, ack("permanent"))).toMatchObject({ deadReason: "rejected", errorDetail: "agent says" })
    expect(settled({}, ack("transient")).status).toBe("failed")
  })
})

describe("age and retention", () => {
  test("a row that was revived by SQL gets its age at the next settle", () => {
    expect(settled({ ageFrom: null }, response(500), PRESETS.relay)).toMatchObject({
      status: "failed",
      ageFrom: NOW,
    })
  })

  test("relay keeps delivered 7 days, rejected 7 days from the attempt, expired 14 days from receipt", () => {
    expect(settled({}, response(200), PRESETS.relay).purgeAt).toBe(NOW + 7 * DAY)
    expect(settled({}, response(404), PRESETS.relay).purgeAt).toBe(NOW + 7 * DAY)
    expect(
      settled({ receivedAt: NOW - 8 * DAY, ageFrom: NOW - 8 * DAY }, response(500), PRESETS.relay).purgeAt,
    ).toBe(NOW + 6 * DAY)
  })

  test("retention from the last attempt counts the attempt that delivered", () => {
    const retention = { delivered: { after: 60, from: "last_attempted_at" } } as const
    const policy = parsePolicy({ delays: [5], maxAttempts: 3, retention })
    expect(settled({ lastAttemptedAt: NOW - DAY }, response(200), policy).purgeAt).toBe(NOW + 60_000)
  })

  test("gateway and jobs keep the dead for ever, standard 90 days", () => {
    for (const policy of [PRESETS.gateway, PRESETS.jobs])
      expect(settled({ attemptCount: 99 }, response(500), policy).purgeAt).toBeNull()
    expect(settled({ attemptCount: 99 }, response(500), PRESETS.standard).purgeAt).toBe(NOW + 90 * DAY)
    expect(settled({}, response(200), PRESETS.standard).purgeAt).toBe(NOW + 30 * DAY)
  })
})

test("every change keeps the rules of the four statuses", () => {
  const outcomes = fc.oneof(
    fc.record({
      kind: fc.constant("response" as const),
      status: fc.integer({ min: 200, max: 599 }),
      excerpt: fc.string(),
      retryAfter: fc.option(fc.string()),
    }),
    fc.constantFrom<Outcome>(
      { kind: "failure", cause: "dns_error" },
      { kind: "interrupted" },
      { kind: "overdue" },
    ),
    fc.constantFrom<Outcome>({ kind: "cancelled" }, { kind: "stalled" }, { kind: "fault", detail: "x" }),
  )
  const deliveries = fc.record({
    status: fc.constantFrom("pending" as const, "failed" as const),
    attemptCount: fc.nat(2000),
    maxAttempts: fc.option(fc.integer({ min: 1, max: 3000 })),
    receivedAt: fc.integer({ min: NOW - 400 * DAY, max: NOW }),
    ageFrom: fc.option(fc.integer({ min: NOW - 400 * DAY, max: NOW + DAY })),
    nextRetryAt: fc.option(fc.integer({ min: NOW - 400 * DAY, max: NOW })),
    lastAttemptedAt: fc.option(fc.integer({ min: NOW - 400 * DAY, max: NOW })),
    stalls: fc.nat(6),
  })
  const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  fc.assert(
    fc.property(
      deliveries,
      outcomes,
      fc.constantFrom(...Object.values(PRESETS)),
      randoms,
      (delivery, outcome, policy, random) => {
        const change = settle(delivery, outcome, policy, NOW, () => random)
        const live = change.status === "pending" || change.status === "failed"
        expect(change.status === "dead").toBe(change.deadReason !== null)
        expect(change.deliveredAt !== null).toBe(change.status === "delivered")
        if (!live) expect(change.nextRetryAt).toBeNull()
        if (live) expect(change.purgeAt).toBeNull()
        if (change.status === "failed" && outcome.kind === "response")
          expect(change.nextRetryAt).toBeGreaterThanOrEqual(NOW)
        if (change.deadReason !== null) expect(DEAD_REASONS).toContain(change.deadReason)
        const counted = outcome.kind === "response" || outcome.kind === "failure"
        expect(change.attemptCount).toBe(delivery.attemptCount + (counted ? 1 : 0))
        expect(Number.isSafeInteger(change.nextRetryAt ?? 0)).toBe(true)
        expect(Number.isSafeInteger(change.purgeAt ?? 0)).toBe(true)
      },
    ),
  )
})
