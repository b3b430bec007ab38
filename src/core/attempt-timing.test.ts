/** The text of an attempt's phases. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { readTiming, writeTiming } from "./attempt-timing.ts"

test("a timing is read as it was written, and without a phase there is none", () => {
  const ms = fc.option(fc.nat(999_999_999))
  fc.assert(
    fc.property(fc.record({ dnsMs: ms, connectMs: ms, tlsMs: ms, firstByteMs: ms }), (timing) => {
      const hasPhase = Object.values(timing).some((one) => one !== null)
      expect(readTiming(writeTiming(timing))).toEqual(hasPhase ? timing : null)
    }),
  )
})

test("a text that is no timing is none", () => {
  for (const text of ["", "1,2,3", "1,2,3,4,5", "1,2,3,-4", "a,b,c,d", "1e9,,,"])
    expect(readTiming(text)).toBeNull()
})
