import { getRandomValues } from "node:crypto"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { SteadyTime, steadyDueOf, systemClock } from "./clock.ts"
import { httpDateMs } from "./http-date.ts"
import { createIds, isId } from "./ids.ts"
import { wants } from "./match.ts"
import { retryAfterMs } from "./retry-after.ts"
import { createVault, parseEncryptionKey } from "./vault.ts"

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

describe("ids", () => {
  const ids = createIds((into) => getRandomValues(into))
  const NOW = Date.UTC(2031, 0, 1)

  test("have the 27-character form and their prefix", () => {
    const id = ids.make("msg", NOW)
    expect(id).toMatch(/^msg_[0-9A-Za-z]{27}$/)
    expect(isId("msg", id)).toBe(true)
    expect(isId("ep", id)).toBe(false)
  })

  test("sort by time in steps of four milliseconds", () => {
    const made = Array.from({ length: 500 }, (_, i) => ids.make("msg", NOW + i * 4))
    expect([...made].sort()).toEqual(made)
  })

  test("made at the same moment sort in the order in which they were made", () => {
    const made = Array.from({ length: 500 }, () => ids.make("msg", NOW))
    expect([...made].sort()).toEqual(made)
  })

  test.each([
    ["none", 0],
    ["all", 255],
    ["others", 0xa5],
  ])("are the base 62 number of bytes that begin with their time, whatever follows: %s of the bits", (_, byte) => {
    const ids = createIds((into) => into.fill(byte))
    for (let second = 0; second < 2 ** 32; second += 2 ** 24 + 4711) {
      const step = second % 250
      const id = ids.make("msg", (1_400_000_000 + second) * 1000 + step * 4 + (step % 4))
      const value = [...id.slice(4)].reduce((sum, digit) => sum * 62n + BigInt(DIGITS.indexOf(digit)), 0n)
      expect(value >> 120n).toBe(BigInt(second) * 256n + BigInt(step))
    }
  })

  test("more than can be counted at one moment have their form, and do not repeat", () => {
    const made = new Set<string>()
    const most = 62 ** 3 + 100
    for (let i = 0; i < most; i++) made.add(ids.make("msg", NOW + 8))
    expect(made.size).toBe(most)
    expect([...made].every((id) => isId("msg", id))).toBe(true)
  })

  test("of a machine that has lost the time have their form as well", () => {
    for (const lost of [0, 1000, 1_399_999_999_999]) expect(isId("msg", ids.make("msg", lost))).toBe(true)
  })

  test("do not repeat", () => {
    expect(new Set(Array.from({ length: 10_000 }, () => ids.make("dlv", NOW))).size).toBe(10_000)
  })
})

describe("Retry-After", () => {
  const NOW = Date.UTC(2031, 0, 1, 12, 0, 0)
  test.each([
    ["120", 120_000],
    [" 7 ", 7000],
    ["Wed, 01 Jan 2031 12:00:30 GMT", 30_000],
    ["Wednesday, 01-Jan-31 12:00:30 GMT", 30_000],
    ["Wed Jan  1 12:00:30 2031", 30_000],
    ["Wed Jan 01 12:00:30 2031", 30_000],
    ["Wed Jan 1 12:00:30 2031", 0],
    ["Wed Jan  1 12:00:30 2031 GMT", 0],
    ["Wed, 01-Jan-31 12:00:30 GMT", 0],
    ["Wednesday, 01-Jan-2031 12:00:30 GMT", 0],
    ["Wednesday, 01-Jan-31 12:00:30 UTC", 0],
    ["wednesday, 01-jan-31 12:00:30 gmt", 0],
    ["Wed, 01 Jan 2031 12:00:30 CET", 0],
    ["Wed, 01 Foo 2031 12:00:30 GMT", 0],
    ["Mon, 31 Feb 2031 12:00:30 GMT", 0],
    ["Wed, 01 Jan 2031 24:00:30 GMT", 0],
    ["Wed, 01 Jan 2031 12:60:30 GMT", 0],
    ["Wed, 01 Jan 2031 12:00:60 GMT", 60_000],
    ["Wed, 01 Jan 2031 12:00:61 GMT", 0],
    ["315360000", 86_400_000],
    ["99999999999999999999999", 0],
    ["-5", 0],
    ["1e3", 0],
    ["Tue, 01 Jan 2030 12:00:00 GMT", 0],
    ["tomorrow", 0],
    ["2031-01-02", 0],
    ["", 0],
    [null, 0],
  ])("%j is %i ms", (header, ms) => {
    expect(retryAfterMs(header, NOW, 86_400)).toBe(ms)
  })

  test("is ignored where the policy says so", () => {
    expect(retryAfterMs("120", NOW, 0)).toBe(0)
  })
})

describe("an HTTP date", () => {
  const NOW = Date.UTC(2031, 0, 1, 12, 0, 0)
  test.each([
    ["Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z"],
    ["Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37.000Z"],
    ["Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37.000Z"],
    ["Wed Nov 16 08:49:37 1994", "1994-11-16T08:49:37.000Z"],
    ["Thursday, 29-Feb-32 23:59:60 GMT", "2032-03-01T00:00:00.000Z"],
    ["Monday, 01-Jan-80 00:00:00 GMT", "2080-01-01T00:00:00.000Z"],
    ["Wednesday, 01-Jan-81 12:00:00 GMT", "2081-01-01T12:00:00.000Z"],
    ["Thursday, 01-Jan-81 12:00:01 GMT", "1981-01-01T12:00:01.000Z"],
  ])("%s is %s", (text, time) => {
    expect(new Date(httpDateMs(text, NOW)).toISOString()).toBe(time)
  })

  test("of two digits may be of the next century", () => {
    const nearTheEnd = Date.UTC(2099, 11, 31)
    expect(new Date(httpDateMs("Friday, 01-Jan-00 00:00:00 GMT", nearTheEnd)).getUTCFullYear()).toBe(2100)
  })
})

describe("which endpoints want a message", () => {
  test.each([
    [null, null, [], true],
    [["a"], null, [], true],
    [["b"], null, [], false],
    [null, ["x"], [], false],
    [null, ["x"], ["x", "y"], true],
    [null, ["z"], ["x", "y"], false],
    [null, null, ["x"], true],
    [["a"], ["x"], ["x"], true],
    [["b"], ["x"], ["x"], false],
  ])("types %j, channels %j, message on %j: %j", (eventTypes, channels, on, expected) => {
    expect(wants({ eventTypes, channels }, "a", on)).toBe(expected)
  })
})

describe("the vault", () => {
  const vault = createVault(parseEncryptionKey("ab".repeat(32)), (into) => getRandomValues(into))

  test("opens what it sealed for the same row only", () => {
    const sealed = vault.seal("whsec_secret", "ep_1")
    expect(vault.open(sealed, "ep_1")).toBe("whsec_secret")
    expect(() => vault.open(sealed, "ep_2")).toThrow(
      expect.objectContaining({ code: "wrong_encryption_key" }),
    )
  })

  test("shows nothing of the secret and never seals twice alike", () => {
    const sealed = [vault.seal("whsec_secret", "ep_1"), vault.seal("whsec_secret", "ep_1")].map((one) =>
      Buffer.from(one),
    )
    expect(sealed[0]!.includes("whsec")).toBe(false)
    expect(sealed[0]!.equals(sealed[1]!)).toBe(false)
  })

  test("notices a changed byte", () => {
    const sealed = vault.seal("whsec_secret", "ep_1")
    sealed[sealed.length - 1]! ^= 1
    expect(() => vault.open(sealed, "ep_1")).toThrow()
  })

  test("another key has another fingerprint", () => {
    const other = createVault(parseEncryptionKey("cd".repeat(32)), (into) => getRandomValues(into))
    expect(other.fingerprint).not.toBe(vault.fingerprint)
  })
})

test("a process that computes has no time left; one that waits has", async () => {
  const clock = systemClock()
  for (const startedAt = performance.now(); performance.now() - startedAt < 40; ) {}
  expect(clock.hasTimeLeft()).toBe(false)
  await expect.poll(() => clock.hasTimeLeft()).toBe(true)
})

describe("the steady clock", () => {
  function clock() {
    const source = { wall: 1_000_000_000, monotonic: 500 }
    const steady = new SteadyTime({ wallMs: () => source.wall, monotonicMs: () => source.monotonic })
    const pass = (ms: number) => {
      source.wall += ms
      source.monotonic += ms
    }
    return { source, steady, pass }
  }

  test("follows the wall clock when nothing jumps", () => {
    const { source, steady, pass } = clock()
    for (let i = 0; i < 100; i++) {
      pass(777)
      expect(steady.now()).toBe(source.wall)
    }
  })

  test.each([
    3_600_000, -3_600_000, 31_536_000_000,
  ])("a wall clock set by %i ms moves it by 5 % of the time that passes", (jump) => {
    const { source, steady, pass } = clock()
    const before = steady.now()
    source.wall += jump
    pass(10_000)
    const drift = steady.now() - before - 10_000
    expect(Math.abs(drift)).toBeLessThanOrEqual(500)
    expect(Math.sign(drift)).toBe(Math.sign(jump))
  })

  test("never goes back, whatever the wall clock does", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: 0, max: 60_000 }))),
        (steps) => {
          const { source, steady, pass } = clock()
          let last = steady.now()
          for (const [jump, ms] of steps) {
            source.wall += jump
            pass(ms)
            const now = steady.now()
            expect(now).toBeGreaterThanOrEqual(last)
            last = now
          }
        },
      ),
    )
  })
})

test.each([
  -3_600_000, -2000, 2000, 3_600_000,
])("a date that becomes a due time after a jump of %i ms comes when the wall clock has it", (jumpMs) => {
  let wallMs = 1_700_000_000_000
  let monotonicMs = 0
  const steady = new SteadyTime({ wallMs: () => wallMs, monotonicMs: () => monotonicMs })
  steady.now()
  wallMs += jumpMs
  const date = wallMs + 36_000_000
  const dueAt = steadyDueOf(date, { now: steady.now(), wall: wallMs })
  while (steady.now() < dueAt) {
    wallMs += 1000
    monotonicMs += 1000
  }
  expect(Math.abs(wallMs - date)).toBeLessThanOrEqual(2000)
})
