import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { delayMs, previewSchedule, retryDelay, scheduledDelay } from "./backoff.ts"
import { PosthornError } from "./errors.ts"
import { isRetryable } from "./outcome.ts"
import { parsePolicy } from "./parse-policy.ts"
import type { PolicyInput } from "./policy.ts"
import { PRESETS, preset } from "./presets.ts"

describe("the presets have exactly the design's numbers", () => {
  const delaysOf = (name: string, count: number) =>
    Array.from({ length: count }, (_, i) => scheduledDelay(preset(name).delays, i + 1))

  test("standard", () => {
    expect(delaysOf("standard", 9)).toEqual([5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400])
    expect(PRESETS.standard).toMatchObject({
      maxAttempts: 10,
      maxAge: null,
      retryable: "non-2xx",
      jitter: [0.8, 1.2],
      gone: true,
    })
    expect(PRESETS.standard.retryAfter).toBeGreaterThan(0)
  })

  test("gateway", () => {
    expect(delaysOf("gateway", 5)).toEqual([30, 120, 600, 3600, 21_600])
    expect(PRESETS.gateway).toMatchObject({
      maxAttempts: 5,
      retryable: "non-2xx",
      jitter: "none",
      retryAfter: 0,
      gone: false,
    })
    expect(previewSchedule(PRESETS.gateway)).toEqual([0, 30, 150, 750, 4350])
  })

  test("relay", () => {
    expect(delaysOf("relay", 14)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600])
    expect(PRESETS.relay).toMatchObject({
      maxAttempts: null,
      maxAge: 604_800,
      retryable: "5xx",
      jitter: "none",
      ordered: true,
      gone: false,
    })
  })

  test("enterprise", () => {
    expect(delaysOf("enterprise", 14)).toEqual([
      1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600,
    ])
    expect(PRESETS.enterprise).toMatchObject({
      maxAttempts: 6,
      retryable: "5xx",
      jitter: [0.5, 1.5],
      gone: false,
    })
  })

  test("jobs", () => {
    expect(delaysOf("jobs", 8)).toEqual([1, 5, 30, 120, 600, 1800, 3600, 3600])
    expect(PRESETS.jobs).toMatchObject({ maxAttempts: 6, retryable: "non-2xx", jitter: "none", gone: false })
    expect(previewSchedule(PRESETS.jobs)).toEqual([0, 1, 6, 36, 156, 756])
  })

  test.each(Object.entries(PRESETS))("%s has 30 s for an attempt and 10 s to connect", (_name, policy) => {
    expect(policy).toMatchObject({ timeout: 30, connectTimeout: 10 })
  })
})

describe("backoff", () => {
  test("is finite at any n, for every formula", () => {
    const inputs = fc.record({
      strategy: fc.constantFrom("exponential" as const, "linear" as const, "fixed" as const),
      base: fc.double({ min: 0, max: 1000, noNaN: true }),
    })
    fc.assert(
      fc.property(inputs, fc.integer({ min: 1, max: 2 ** 31 }), (delays, n) => {
        const delay = scheduledDelay(parsePolicy({ delays, maxAttempts: 5 }).delays, n)
        expect(Number.isFinite(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(delay).toBeLessThanOrEqual(86_400)
      }),
    )
  })

  test("exponential delays never shrink, and reach the cap where the formula does", () => {
    const formulas = fc.record({
      base: fc.double({ min: 0.001, max: 1000, noNaN: true }),
      factor: fc.double({ min: 1.001, max: 100, noNaN: true }),
      stretch: fc.double({ min: 1, max: 1_000_000, noNaN: true }),
    })
    fc.assert(
      fc.property(formulas, fc.integer({ min: 1, max: 100_000 }), ({ base, factor, stretch }, n) => {
        const cap = Math.min(base * stretch, 365 * 86_400)
        const { delays } = parsePolicy({
          delays: { strategy: "exponential", base, factor, cap },
          maxAttempts: 9,
        })
        expect(scheduledDelay(delays, n + 1)).toBeGreaterThanOrEqual(scheduledDelay(delays, n))
        const reached = Math.ceil(Math.log(cap / base) / Math.log(factor)) + 2
        expect(scheduledDelay(delays, reached)).toBe(cap)
        expect(scheduledDelay(delays, reached + n)).toBe(cap)
      }),
    )
  })

  test("a factor close to one reaches the cap too, in the preview as well", () => {
    const slow = parsePolicy({
      delays: { strategy: "exponential", base: 1, factor: 1.05, cap: 3600 },
      maxAttempts: 2000,
    })
    expect(retryDelay(slow, 1000)).toBe(3600)
    const starts = previewSchedule(slow, 1000)
    expect(starts.at(-1)! - starts.at(-2)!).toBe(3600)
  })

  test("relay does not overflow at attempt 1000", () => {
    expect(scheduledDelay(PRESETS.relay.delays, 1000)).toBe(3600)
    expect(scheduledDelay(PRESETS.enterprise.delays, 1000)).toBe(3600)
  })

  test("jitter stays within its factor, and the cap holds after it", () => {
    const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), randoms, (n, random) => {
        const delay = delayMs(PRESETS.enterprise, n, () => random)
        const scheduled = scheduledDelay(PRESETS.enterprise.delays, n) * 1000
        expect(delay).toBeGreaterThanOrEqual(Math.floor(scheduled * 0.5))
        expect(delay).toBeLessThanOrEqual(Math.min(Math.ceil(scheduled * 1.5), 3_600_000))
      }),
    )
    expect(delayMs(parsePolicy({ delays: [10], maxAttempts: 2, jitter: "full" }), 1, () => 0)).toBe(0)
  })

  test("linear and fixed", () => {
    const linear = parsePolicy({ delays: { strategy: "linear", base: 10, cap: 25 }, maxAttempts: 9 }).delays
    expect([1, 2, 3, 4].map((n) => scheduledDelay(linear, n))).toEqual([10, 20, 25, 25])
    const fixed = parsePolicy({ delays: { strategy: "fixed", base: 7 }, maxAttempts: 9 }).delays
    expect([1, 50].map((n) => scheduledDelay(fixed, n))).toEqual([7, 7])
  })
})

describe("seed 003's words", () => {
  test("max_retries is one less than maxAttempts, base_delay and max_delay are base and cap", () => {
    const policy = parsePolicy({ max_retries: 5, base_delay: 2, max_delay: 60, strategy: "exponential" })
    expect(policy).toMatchObject({
      maxAttempts: 6,
      delays: { strategy: "exponential", base: 2, factor: 2, cap: 60 },
    })
  })

  test.each([
    { max_retries: 5, delays: [1] },
    { base_delay: 1, maxAttempts: 3 },
    { max_delay: 60, maxAttempts: 3 },
    { strategy: "fixed", maxAttempts: 3 },
  ] as const)("%j brings the classifier: 4xx is rejected, unless retryable says otherwise", (words) => {
    expect(parsePolicy(words).retryable).toBe("5xx")
    expect(parsePolicy({ ...words, retryable: "non-2xx" }).retryable).toBe("non-2xx")
  })
})

describe("a bad policy names the field", () => {
  const bad: [PolicyInput, string][] = [
    [{ delays: [30] }, "retry.maxAttempts"],
    [{ maxAttempts: 3 }, "retry.delays"],
    [{ delays: [], maxAttempts: 3 }, "retry.delays"],
    [{ delays: [30, -1], maxAttempts: 3 }, "retry.delays[1]"],
    [{ delays: [Number.NaN], maxAttempts: 3 }, "retry.delays[0]"],
    [{ delays: [1], then: -5, maxAttempts: 3 }, "retry.then"],
    [{ delays: [1], maxAttempts: 0 }, "retry.maxAttempts"],
    [{ delays: [1], maxAttempts: 2.5 }, "retry.maxAttempts"],
    [{ delays: [1], maxAge: -1 }, "retry.maxAge"],
    [{ delays: [1], maxAttempts: 3, jitter: [1.5, 0.5] }, "retry.jitter"],
    [{ delays: [1], maxAttempts: 3, jitter: "some" as never }, "retry.jitter"],
    [{ delays: [1], maxAttempts: 3, retryable: "all" as never }, "retry.retryable"],
    [{ delays: [1], maxAttempts: 3, timeout: 0 }, "retry.timeout"],
    [{ delays: [1], maxAttempts: 3, retention: { deleted: "never" } as never }, "retry.retention.deleted"],
    [{ delays: [1], maxAttempts: 3, retention: { dead: { after: -1 } } }, "retry.retention.dead.after"],
    [{ delays: { strategy: "quadratic" as never, base: 1 }, maxAttempts: 3 }, "retry.delays.strategy"],
    [{ delays: { strategy: "fixed", base: 1, factor: 3 }, maxAttempts: 3 }, "retry.delays.factor"],
    [{ delays: { strategy: "exponential", base: 10, cap: 5 }, maxAttempts: 3 }, "retry.delays.cap"],
    [{ delays: [1], max_retries: 2, maxAttempts: 3 }, "retry.max_retries"],
    [{ delays: [1], base_delay: 1, maxAttempts: 3 }, "retry.delays"],
    [{ base_delay: -1, max_retries: 3 }, "retry.base_delay"],
    [{ delays: [1], maxAttempts: 3, maxattempts: 4 } as never, "retry.maxattempts"],
    ["standard " as never, "retry"],
    [null as never, "retry"],
  ]
  test.each(bad)("%j", (input, field) => {
    expect(() => parsePolicy(input)).toThrow(PosthornError)
    expect(() => parsePolicy(input)).toThrow(expect.objectContaining({ code: "invalid_input", field }))
  })
})

describe("other spellings", () => {
  test("max_attempts, backoff_schedule and connect_timeout say what our own names say", () => {
    const words = {
      max_attempts: 6,
      backoff_schedule: [1, 5, 30, 120, 600, 1800],
      timeout: 20,
      connect_timeout: 5,
    }
    expect(parsePolicy(words)).toEqual(
      parsePolicy({
        maxAttempts: 6,
        delays: [1, 5, 30, 120, 600, 1800],
        timeout: 20,
        connectTimeout: 5,
      }),
    )
  })

  test.each([
    [{ max_attempts: 0, delays: [1] }, "retry.max_attempts must be a whole number between 1 and 100000"],
    [{ max_attempts: 2, backoff_schedule: [] }, "retry.backoff_schedule must not be an empty list"],
    [
      { max_attempts: 2, backoff_schedule: [1, -1] },
      "retry.backoff_schedule[1] must be a number between 0 and 31536000",
    ],
    [{ max_attempts: 2, backoff_schedule: 5 }, "retry.backoff_schedule must be a list of seconds"],
    [
      { max_attempts: 2, delays: [1], connect_timeout: 0 },
      "retry.connect_timeout must be a number between 0.001 and 600",
    ],
    [
      { max_attempts: 2, maxAttempts: 2, delays: [1] },
      "retry.max_attempts and maxAttempts say the same thing; give one of them",
    ],
    [
      { max_attempts: 2, backoff_schedule: [1], base_delay: 1 },
      "retry.backoff_schedule cannot be combined with strategy, base_delay or max_delay",
    ],
  ])("%j is refused in its own words", (policy, message) => {
    expect(() => parsePolicy(policy as PolicyInput)).toThrow(message)
  })
})

describe("a policy answers questions of its own", () => {
  test("retryDelay is the delay after the n-th failure, with jitter only where it is drawn", () => {
    const policy = parsePolicy({ delays: [30, 120], then: 600, maxAttempts: 9, jitter: [0.5, 1.5] })
    expect([1, 2, 3, 8].map((failure) => retryDelay(policy, failure))).toEqual([30, 120, 600, 600])
    expect(retryDelay(policy, 1, () => 0)).toBe(15)
    expect(retryDelay(PRESETS.gateway, 5)).toBe(21_600)
    expect(() => retryDelay(policy, 0)).toThrow("failure must be a whole number")
  })

  test.each([
    ["standard", 500, true],
    ["standard", 404, true],
    ["standard", 410, false],
    ["standard", 204, false],
    ["enterprise", 404, false],
    ["enterprise", 429, false],
    ["enterprise", 503, true],
    ["enterprise", "timeout", true],
  ] as const)("under %s, %s is retryable: %s", (name, outcome, expected) => {
    expect(isRetryable(PRESETS[name], outcome)).toBe(expected)
  })

  test("a preset is taken by its name too", () => {
    expect(retryDelay("gateway", 5)).toBe(21_600)
    expect(isRetryable("enterprise", 404)).toBe(false)
  })

  test.each([
    ["nothing", "policy names no policy; presets are standard, "],
    [undefined, "policy must be the name of a preset, or a policy as parsePolicy makes it"],
    [
      { delays: [30], maxAttempts: 3 },
      "policy must be the name of a preset, or a policy as parsePolicy makes it",
    ],
  ])("%j is refused as a policy, in a sentence", (policy, message) => {
    expect(() => retryDelay(policy as "standard", 1)).toThrow(message)
    expect(() => isRetryable(policy as "standard", 500)).toThrow(message)
  })

  test.each([[99], [600], [1.5], ["lost"]])("%s is no outcome", (outcome) => {
    expect(() => isRetryable(PRESETS.standard, outcome as number)).toThrow(/^outcome must be /)
  })
})
