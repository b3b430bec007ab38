import { expect, test } from "vitest"
import { combineFamilies, type FamilyAnswer } from "./resolution.ts"

const found = (...ttls: number[]): FamilyAnswer => ({
  status: "fulfilled",
  value: ttls.map((ttl, i) => ({ address: `93.184.216.${i}`, ttl })),
})
const failed = (code: string): FamilyAnswer => ({ status: "rejected", reason: { code } })

test.each([
  ["ENODATA", "ENODATA", "dns_error"],
  ["ENOTFOUND", "ENOTFOUND", "dns_error"],
  ["ETIMEOUT", "ETIMEOUT", "timeout"],
  ["ECANCELLED", "ECANCELLED", "timeout"],
  ["ETIMEOUT", "ECANCELLED", "timeout"],
  ["ENODATA", "ECANCELLED", "timeout"],
  ["ETIMEOUT", "ENODATA", "timeout"],
  ["ESERVFAIL", "ETIMEOUT", "dns_error"],
  ["ECANCELLED", "ENOTFOUND", "dns_error"],
])("%s for A and %s for AAAA is %s", (a, aaaa, problem) => {
  expect(combineFamilies("x.example", failed(a), failed(aaaa))).toEqual({
    resolution: { problem, detail: `x.example: A ${a}, AAAA ${aaaa}` },
    cacheMs: 3000,
  })
})

test.each([
  [[300, 7, 20], 7000],
  [[0], 1000],
  [[86_400], 30_000],
  [[2 ** 31], 30_000],
])("records with a TTL of %j seconds are cached for %i ms", (ttls, cacheMs) => {
  expect(combineFamilies("x.example", found(...ttls), failed("ENODATA")).cacheMs).toBe(cacheMs)
})

test("an empty list is a dns_error, and so are more than 32 addresses of both families together", () => {
  expect(combineFamilies("x.example", found(), found()).resolution).toMatchObject({ problem: "dns_error" })
  const sixteen = found(...new Array(16).fill(60))
  const seventeen = found(...new Array(17).fill(60))
  expect(combineFamilies("x.example", sixteen, sixteen).resolution).toMatchObject({
    addresses: { length: 32 },
  })
  expect(combineFamilies("x.example", sixteen, seventeen).resolution).toEqual({
    problem: "dns_error",
    detail: "x.example has 33 addresses",
  })
})
