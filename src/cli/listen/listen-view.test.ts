import { expect, test } from "vitest"
import { handled, webhook } from "../../../test/support/webhooks.ts"
import { answered, arrived, EMPTY, type ListenState } from "./listen-state.ts"
import { listenLines } from "./listen-view.ts"

const KEYS = "j k select · r send again · p print · q end"
const AT = new Date(2026, 10, 17, 9, 5, 7)
const REFUSED = "http://localhost:3000 refused the connection"

const paint = (text: string) => text
const lines = (state: ListenState, columns = 80, rows = 24) => listenLines(state, { columns, rows, paint })

function came(state: ListenState, n: number, status: number | null, more: object = {}): ListenState {
  const event = webhook({ deliveryId: `dlv_${n}`, ...more })
  const error = status === null ? REFUSED : null
  return answered(arrived(state, event, AT), handled(event, status, { error, durationMs: n }))
}

test("each webhook is a row with what was answered", () => {
  let state = came(EMPTY, 1, 200)
  state = came(state, 2, 422, { method: "PUT", path: "" })
  state = came(state, 3, 503, { eventType: "pull_request", attempt: 12 })
  state = came(state, 4, null)
  state = arrived(state, webhook({ deliveryId: "dlv_5" }), AT)
  expect(lines(state)).toEqual([
    "   TIME      REQUEST      TYPE          ANSWER               MS  TRY",
    "   09:05:07  POST /hooks  push          200                   1    1",
    "   09:05:07  PUT /        push          422, rejected         2    1",
    "   09:05:07  POST /hooks  pull_request  503, retrying         3   12",
    "   09:05:07  POST /hooks  push          no answer, retrying   4    1",
    ">  09:05:07  POST /hooks  push          …                          1",
    "",
    KEYS,
  ])
})

test("the selected row is marked, and the reason of its failure is below", () => {
  const state = came(came(EMPTY, 1, null), 2, 200)
  expect(lines({ ...state, selected: 1 }).slice(1)).toEqual([
    ">  09:05:07  POST /hooks  push  no answer, retrying   1    1",
    "   09:05:07  POST /hooks  push  200                   2    1",
    "",
    `${REFUSED}; the webhook is tried again.`,
    KEYS,
  ])
})

test("without a webhook it says that it waits, and without a connection why", () => {
  expect(lines(EMPTY)).toEqual(["Waiting for webhooks.", KEYS])
  const problem = "Not connected: http://localhost:8071 refused the connection. The next try is in 3 s."
  expect(lines({ ...EMPTY, problem, notice: "No webhook has come yet." }, 50)).toEqual([
    "Not connected: http://localhost:8071 refused the",
    "connection. The next try is in 3 s.",
    "No webhook has come yet.",
    KEYS,
  ])
})

test.each([
  [80, 24],
  [60, 15],
  [40, 10],
  [20, 5],
  [5, 1],
])("%i columns and %i rows are enough", (columns, rows) => {
  let state = EMPTY
  for (let n = 1; n <= 40; n++)
    state = came(state, n, n === 40 ? null : 200, {
      path: "/a/long/path".repeat(9),
      eventType: "type".repeat(20),
    })
  const drawn = lines({ ...state, problem: "Not connected: the connection broke off." }, columns, rows)
  expect(drawn.length).toBeLessThanOrEqual(Math.max(1, rows - 1))
  for (const line of drawn) expect([...line].length).toBeLessThanOrEqual(columns)
})

test("a narrow terminal keeps the request and the answer", () => {
  const state = came(EMPTY, 1, 200, { path: "/a/long/path/to/somewhere/that/is/long" })
  expect(lines(state, 60)[1]).toMatch(/^> {2}09:05:07 {2}POST \/a\/long\S*… {2}.*200 +1 +1$/)
})

test("the rows around the selected one are shown", () => {
  let state = EMPTY
  for (let n = 1; n <= 40; n++) state = came(state, n, 200, { path: `/${n}` })
  const shown = (selected: number | null) =>
    lines({ ...state, selected }, 80, 10).flatMap((line) => /POST \/(\d+)/.exec(line)?.[1] ?? [])
  expect(shown(null)).toEqual(["35", "36", "37", "38", "39", "40"])
  expect(shown(20)).toEqual(["17", "18", "19", "20", "21", "22"])
  expect(shown(1)).toEqual(["1", "2", "3", "4", "5", "6"])
})

test("a stranger's characters cannot drive the terminal", () => {
  const state = came(EMPTY, 1, 200, { path: "/\x1b[2J" })
  expect(lines(state)[1]).toContain("POST /\\x1b[2J")
})
