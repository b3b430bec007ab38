import { getRandomValues } from "node:crypto"
import fc from "fast-check"
import { expect, onTestFinished, test } from "vitest"
import { whatIf } from "../../src/core/cost-what-if.ts"
import { createIds } from "../../src/core/ids.ts"
import { parsePolicy } from "../../src/core/parse-policy.ts"
import type { Policy } from "../../src/core/policy.ts"
import { isOverdue, type LiveDelivery, type LiveStatus, settle } from "../../src/core/settle.ts"
import { isGivenUp } from "../../src/store/rollups.ts"
import { Connection } from "../../src/store/sqlite/connection.ts"
import { Context } from "../../src/store/sqlite/context.ts"
import { migrate } from "../../src/store/sqlite/migrate.ts"
import { sumRollups } from "../../src/store/sqlite/rollups.ts"
import type { RollupFilter, RollupSum } from "../../src/store/store.ts"

const NOW = 1_900_000_000_000

/** A message for an endpoint: the outcome, the duration and the jitter of each attempt that any policy may make of it. */
interface Life {
  readonly endpoint: number
  readonly receivedAt: number
  readonly statuses: readonly number[]
  readonly durationMs: number
  /** From the time that an attempt is due to its start. */
  readonly lagMs: number
  readonly random: number
}

const policies = fc
  .record({
    delays: fc.array(fc.integer({ min: 0, max: 7200 }), { minLength: 1, maxLength: 6 }),
    maxAttempts: fc.integer({ min: 1, max: 30 }),
    maxAge: fc.option(fc.integer({ min: 1, max: 100_000 })),
    retryable: fc.constantFrom("non-2xx" as const, "transient" as const, "5xx" as const),
    jitter: fc.constantFrom("none" as const, "full" as const, [0.5, 1.5] as const),
  })
  .map(({ maxAge, ...rest }) => parsePolicy({ ...rest, ...(maxAge === null ? {} : { maxAge }) }))

const ages = fc.integer({ min: 1, max: 50_000 })

const lives: fc.Arbitrary<Life[]> = fc.array(
  fc.record({
    endpoint: fc.integer({ min: 0, max: 3 }),
    receivedAt: fc.integer({ min: 0, max: 20_000_000 }).map((ms) => NOW + ms),
    statuses: fc.array(fc.constantFrom(500, 500, 500, 429, 404, 410, 200), { minLength: 1, maxLength: 30 }),
    durationMs: fc.integer({ min: 0, max: 30_000 }),
    lagMs: fc.integer({ min: 0, max: 100_000 }),
    random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  }),
  { minLength: 1, maxLength: 25 },
)

/** The roll-ups of a store, empty at the start of each run. */
function openRollups() {
  const connection = new Connection(":memory:")
  onTestFinished(() => connection.close())
  migrate(connection)
  return new Context(
    connection,
    createIds((into) => getRandomValues(into)),
  )
}

/** Runs the deliveries through `settle`, and each settlement into the roll-ups. */
function run(context: Context, all: readonly Life[], policy: Policy) {
  context.connection.db.exec("DELETE FROM attempt_rollups")
  const made = { attempts: 0, delivered: 0, dead: 0, bytesOut: 0 }
  for (const [i, life] of all.entries()) {
    let delivery: LiveDelivery = {
      status: "pending",
      attemptCount: 0,
      maxAttempts: null,
      receivedAt: life.receivedAt,
      ageFrom: life.receivedAt,
      nextRetryAt: null,
      lastAttemptedAt: null,
      stalls: 0,
    }
    for (let isLive = true; isLive; ) {
      const startedAt = (delivery.nextRetryAt ?? life.receivedAt) + life.lagMs
      const overdue = isOverdue(delivery, policy, startedAt, 0)
      const status = life.statuses[delivery.attemptCount % life.statuses.length]!
      const settledAt = overdue ? startedAt : startedAt + life.durationMs
      const change = settle(
        delivery,
        overdue ? { kind: "overdue" } : { kind: "response", status, excerpt: "", retryAfter: null },
        policy,
        settledAt,
        () => life.random,
      )
      const succeeded = change.status === "delivered"
      const attempt = {
        id: "",
        status: succeeded ? ("succeeded" as const) : ("failed" as const),
        manual: false,
        attemptNumber: delivery.attemptCount + 1,
        url: "",
        responseStatus: status,
        responseBody: null,
        responseTruncated: false,
        error: null,
        startedAt,
        durationMs: life.durationMs,
        timing: null,
      }
      const settlement = {
        seq: i,
        deliveryId: `dlv_${i}`,
        messageId: `msg_${i}`,
        endpointId: `ep_${life.endpoint}`,
        token: 1,
        expectedAttemptCount: delivery.attemptCount,
        expectedAgeFrom: delivery.ageFrom,
        appId: "app_1",
        eventType: "t",
        payloadBytes: i,
        change,
        attempt: overdue ? null : attempt,
        settledAt,
        gate: null,
      }
      context.rollups.add(settlement, isGivenUp(change))
      made.attempts += Number(!overdue)
      made.bytesOut += overdue ? 0 : i
      made.delivered += Number(succeeded)
      made.dead += Number(change.status === "dead")
      isLive = change.status === "failed"
      delivery = { ...delivery, ...change, status: change.status as LiveStatus }
    }
  }
  context.rollups.flush()
  const sums = (filter: RollupFilter = {}) => sumRollups(context, filter, ["attemptNumber"])
  const total = sumRollups(context, {}, [])[0]!
  expect(total).toMatchObject({ attempts: made.attempts, succeeded: made.delivered, dead: made.dead })
  return { ...made, sums }
}

const highestOf = (sums: readonly RollupSum[]) =>
  Math.max(...sums.map(({ attempts, attemptNumber }) => (attempts === 0 ? 1 : attemptNumber!)))

test("a what-if for maxAttempts agrees with running the same outcomes through settle", () => {
  const context = openRollups()
  fc.assert(
    fc.property(lives, policies, fc.integer({ min: 1, max: 19 }), (all, policy, wanted) => {
      const now = run(context, all, policy)
      const sums = now.sums()
      const maxAttempts = Math.min(wanted, highestOf(sums))
      const other = run(context, all, { ...policy, maxAttempts })
      const { saved, lost, delivered } = whatIf({ maxAttempts, maxAge: null }, sums, null, null)
      const attempts = now.attempts - other.attempts
      expect(saved.atLeast).toMatchObject({ attempts, bytesOut: now.bytesOut - other.bytesOut })
      expect(saved.atMost).toEqual(saved.atLeast)
      const missing = now.delivered - other.delivered
      expect([lost.atLeast, lost.atMost, delivered]).toEqual([missing, missing, now.delivered])
    }),
    { numRuns: 300 },
  )
})

test("a what-if for maxAge, alone or with maxAttempts, has the result of settle within its bounds", () => {
  const context = openRollups()
  const exact = { yes: 0, no: 0 }
  fc.assert(
    fc.property(
      lives,
      policies,
      ages,
      fc.option(fc.integer({ min: 1, max: 19 })),
      (all, policy, age, wanted) => {
        const maxAge = Math.min(age, policy.maxAge ?? age)
        const now = run(context, all, policy)
        const sums = now.sums()
        const older = {
          atLeast: now.sums({ olderThanMs: maxAge * 1000 }),
          atMost: now.sums({ maybeOlderThanMs: maxAge * 1000 }),
        }
        if (older.atMost.every(({ attempts }) => attempts === 0)) return
        const maxAttempts = wanted === null ? null : Math.min(wanted, highestOf(sums))
        const other = run(context, all, { ...policy, maxAge, maxAttempts: maxAttempts ?? policy.maxAttempts })
        const { saved, lost } = whatIf({ maxAttempts, maxAge }, sums, older, null)
        const [attempts, missing] = [now.attempts - other.attempts, now.delivered - other.delivered]
        const within = (value: number, least: number, most: number) => least <= value && value <= most
        expect(within(attempts, saved.atLeast.attempts, saved.atMost.attempts)).toBe(true)
        expect(within(missing, lost.atLeast, lost.atMost)).toBe(true)
        exact[saved.atLeast.attempts === saved.atMost.attempts ? "yes" : "no"]++
      },
    ),
    { numRuns: 300 },
  )
  // Bounds that are always wide would agree with anything.
  expect(exact.yes).toBeGreaterThan(exact.no / 4)
})
