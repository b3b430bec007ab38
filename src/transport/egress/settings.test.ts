/** The machine's own addresses. Settings by option and variable are tested in test/egress/environment.test.ts. */
import { syncBuiltinESMExports } from "node:module"
import os from "node:os"
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest"
import { systemClock } from "../../core/clock.ts"
import { Guard } from "./guard.ts"
import { type EgressInput, parseEgress } from "./settings.ts"

const OWN = ["93.184.215.14", "2606:2800:220:1::1"]

// The machine that runs the tests has no public address, so its interfaces are replaced.
beforeAll(() => {
  const interfaces = { eth0: OWN.map((address) => ({ address })), lo: undefined } as never
  vi.spyOn(os, "networkInterfaces").mockReturnValue(interfaces)
  syncBuiltinESMExports()
})

afterAll(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})

function guard(input: EgressInput = {}): Guard {
  const made = new Guard(parseEgress(input), systemClock())
  onTestFinished(() => made.close())
  return made
}

test("the machine's own addresses are known from its interfaces", () => {
  expect(parseEgress().rules.addresses.own).toEqual(OWN)
})

test.each([
  "http://93.184.215.14/",
  "https://[2606:2800:220:1::1]/",
  "https://[2606:2800:220:1:0:0:0:1]:8443/",
])("%s is the machine's own address: refused at creation and at the connection", async (url) => {
  expect(await guard().urlProblem(url)).toMatch(/must not lead to an address that is not public/)
  await expect(guard().vet(new URL(url), "ep_1")).rejects.toMatchObject({ failure: "target_forbidden" })
  expect(guard().target(url)).toBeNull()
})

test("the address next to it is allowed, and an operator can open the machine's own", async () => {
  expect(await guard().urlProblem("http://93.184.215.15/")).toBeNull()
  const open = guard({ allow: OWN })
  expect(await open.urlProblem("http://93.184.215.14/")).toBeNull()
  expect(await open.vet(new URL("http://[2606:2800:220:1::1]/"), "ep_1")).toEqual(["2606:2800:220:1::1"])
})
