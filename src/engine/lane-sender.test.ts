/** A failure at the end of a delivery does not keep its slot taken. */
import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { createLogger } from "../observe/log.ts"
import type { ClaimedDelivery, LaneSession, Settlement } from "../store/store.ts"
import type { Tried } from "./attempt.ts"
import type { LaneDependencies } from "./lane-dependencies.ts"
import { LaneSender, type SenderListener } from "./lane-sender.ts"
import { LaneState } from "./lane-state.ts"
import { ApplicationRates } from "./limits.ts"
import { PendingSettlement } from "./pending-settlement.ts"
import { Slots } from "./slots.ts"

function start(listener: Partial<SenderListener> = {}) {
  const clock = new TestClock()
  const slots = new Slots(1, clock)
  const deps = {
    clock,
    slots,
    load: { wrote: () => {} },
    events: {
      emit: () => {
        throw new Error("a mistake of ours")
      },
    },
    logger: createLogger("silent"),
  } as unknown as LaneDependencies
  const told: string[] = []
  const session = {} as LaneSession
  const sender = new LaneSender(
    deps,
    { endpointId: "ep", appId: "app", token: 1 },
    new LaneState("app", new ApplicationRates(), 1, Math.random),
    session,
    {
      step: () => {},
      isEnded: () => false,
      isDry: () => true,
      dueAt: () => {},
      held: () => {},
      returned: () => {},
      outcomeLost: () => void told.push("outcome lost"),
      settled: () => void told.push("settled"),
      ...listener,
    },
  )
  const settlement = {
    delivery: { id: "dlv" } as ClaimedDelivery,
    change: { nextRetryAt: null },
    attempt: null,
    settledAt: 0,
    gate: null,
  } as Settlement
  const slot = slots.take(0, 0, false, () => {})!
  const pending = new PendingSettlement(sender, session, settlement, { result: null } as Tried, slot, 0)
  const isSlotFree = () => slots.take(0, 0, false, () => {}) !== null
  return { sender, pending, told, isSlotFree }
}

test("a slot is free after a written outcome, though reporting it fails", () => {
  const { sender, pending, told, isSlotFree } = start()
  expect(() => sender.written(pending, "applied")).toThrow("a mistake of ours")
  expect(told).toEqual(["settled"])
  expect(isSlotFree()).toBe(true)
})

test("a slot is free after an outcome that could not be written, and the lane is told", () => {
  const { sender, pending, told, isSlotFree } = start()
  sender.refused(pending, new Error("the store has ended"))
  expect(told).toEqual(["outcome lost", "settled"])
  expect(isSlotFree()).toBe(true)
})

test("a slot is free though the lane's listener throws", () => {
  const { sender, pending, isSlotFree } = start({
    settled: () => {
      throw new Error("another mistake")
    },
  })
  expect(() => sender.refused(pending, new Error("the store has ended"))).toThrow("another mistake")
  expect(isSlotFree()).toBe(true)
})
