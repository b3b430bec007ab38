import { expect, test } from "vitest"
import { handled, webhook } from "../../../test/support/webhooks.ts"
import { answered, arrived, EMPTY, type ListenState } from "./listen-state.ts"

const AT = new Date(0)
const rowsOf = ({ webhooks }: ListenState) =>
  webhooks.map(({ event, answer, isContinued }) => [
    event.deliveryId,
    event.attempt,
    answer?.outcome.status ?? null,
    isContinued,
  ])

test("another attempt changes the row of its delivery", () => {
  const first = webhook()
  const second = webhook({ attempt: 2 })
  const other = webhook({ deliveryId: "dlv_2" })
  let state = answered(arrived(EMPTY, first, AT), handled(first, 500))
  state = arrived(arrived(state, other, AT), second, AT)
  expect(rowsOf(state)).toEqual([
    ["dlv_1", 2, null, false],
    ["dlv_2", 1, null, false],
  ])
  state = answered(state, handled(second, 200))
  expect(rowsOf(state)[0]).toEqual(["dlv_1", 2, 200, false])
})

test("an attempt that was asked for is a new row, and those that follow change that one", () => {
  const first = webhook()
  const asked = webhook({ manual: true })
  let state = answered(arrived(EMPTY, first, AT), handled(first, 500))
  state = arrived(state, asked, AT)
  // It comes again on another connection, while the program still has it.
  state = arrived(state, asked, AT)
  state = arrived(answered(state, handled(asked, 500)), webhook({ attempt: 2 }), AT)
  expect(rowsOf(state)).toEqual([
    ["dlv_1", 1, 500, true],
    ["dlv_1", 2, null, false],
  ])
})

test("the oldest are forgotten, by number and by size, and a forgotten one is not selected", () => {
  let state: ListenState = EMPTY
  for (let n = 1; n <= 600; n++) state = arrived(state, webhook({ deliveryId: `dlv_${n}` }), AT)
  expect(state.webhooks).toHaveLength(500)
  expect(state.webhooks[0]!.event.deliveryId).toBe("dlv_101")
  state = { ...state, selected: 101 }
  const large = { body: Buffer.alloc(20 * 1024 * 1024) }
  state = arrived(state, webhook({ deliveryId: "large", ...large }), AT)
  expect([state.webhooks.length, state.selected]).toEqual([500, null])
  state = arrived(state, webhook({ deliveryId: "larger", ...large }), AT)
  expect(rowsOf(state)).toEqual([["larger", 1, null, false]])
  expect(answered(state, handled(webhook(), 200))).toBe(state)
})
