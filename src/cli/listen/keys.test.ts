import { expect, test } from "vitest"
import { handled, webhook } from "../../../test/support/webhooks.ts"
import { type Key, keysIn, pressed } from "./keys.ts"
import { answered, arrived, EMPTY, type ListenState, selectedOf } from "./listen-state.ts"

test.each<[typed: string, keys: Key[]]>([
  ["j", ["down"]],
  ["\x1b[B\x1bOB", ["down", "down"]],
  ["k\x1b[A\x1bOA", ["up", "up", "up"]],
  ["rpq", ["again", "print", "end"]],
  ["\x03", ["end"]],
  ["\x04", ["end"]],
  // Page down, Ctrl-right, a mouse report, Delete: their letters and digits are no keys.
  ["\x1b[6~\x1b[1;5C\x1b[<0;1;1M\x1b[3~", []],
  ["\x1b", []],
  ["xÄ😀R\n", []],
  ["", []],
])("what is typed as %j are the keys %j", (typed, keys) => {
  expect(keysIn(typed)).toEqual(keys)
})

/** As many webhooks, each answered with 200. */
function stateWith(count: number): ListenState {
  let state = EMPTY
  for (let n = 1; n <= count; n++) {
    const event = webhook({ deliveryId: `dlv_${n}` })
    state = answered(arrived(state, event, new Date(n)), handled(event, 200))
  }
  return state
}

const selectedId = (state: ListenState) => selectedOf(state)?.event.deliveryId

test.each<[keys: Key[], selected: string]>([
  [[], "dlv_3"],
  [["up"], "dlv_2"],
  [["up", "up"], "dlv_1"],
  [["up", "up", "up", "up"], "dlv_1"],
  [["up", "up", "down"], "dlv_2"],
  [["up", "down"], "dlv_3"],
  [["down", "down"], "dlv_3"],
])("after %j the row %s is selected", (keys, selected) => {
  const after = keys.reduce((state, key) => pressed(state, key).state, stateWith(3))
  expect(selectedId(after)).toBe(selected)
})

test("the newest stays selected until another row is, which then stays", () => {
  const fourth = webhook({ deliveryId: "dlv_4" })
  expect(selectedId(arrived(stateWith(3), fourth, new Date()))).toBe("dlv_4")
  const { state } = pressed(stateWith(3), "up")
  expect(selectedId(arrived(state, fourth, new Date()))).toBe("dlv_2")
  const back = pressed(pressed(state, "down").state, "down").state
  expect(selectedId(arrived(back, fourth, new Date()))).toBe("dlv_4")
})

test("r and p are about the selected webhook, and q ends it", () => {
  const { state } = pressed(stateWith(3), "up")
  for (const [key, kind] of [
    ["again", "again"],
    ["print", "print"],
  ] as const)
    expect(pressed(state, key).action).toMatchObject({ kind, webhook: { event: { deliveryId: "dlv_2" } } })
  expect(pressed(state, "end").action).toEqual({ kind: "end" })
  expect(pressed(state, "up").action).toBeNull()
})

test("a key that can do nothing says why, until the next key", () => {
  for (const key of ["again", "print"] as const) {
    const none = pressed(EMPTY, key)
    expect(none).toMatchObject({ action: null, state: { notice: "No webhook has come yet." } })
    expect(pressed(none.state, "up").state.notice).toBeNull()
  }
  const running = arrived(EMPTY, webhook(), new Date())
  expect(pressed(running, "again")).toMatchObject({
    action: null,
    state: { notice: "The local program has not answered it yet." },
  })
  expect(pressed(running, "print").action).toMatchObject({ kind: "print" })
  expect(pressed(EMPTY, "up").state.selected).toBeNull()
  expect(pressed(EMPTY, "down").state.selected).toBeNull()
})
