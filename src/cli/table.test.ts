/** Tables keep their columns, fit the terminal, and let nothing through that acts on it. */
import { expect, test } from "vitest"
import { type Column, PLAIN, recordLines, shortId, shortTime, tableLines, time } from "./table.ts"

interface Row {
  readonly id: string
  readonly url?: string | null
  readonly tries: number
}

const COLUMNS: readonly Column<Row>[] = [
  { title: "ID", value: ({ id }) => id },
  { title: "TRIES", value: ({ tries }) => tries, right: true },
  { title: "URL", value: ({ url }) => url, cut: true },
]

test("columns are in line, numbers to the right, and nothing trails", () => {
  const rows = [
    { id: "dlv_1", tries: 3, url: "https://example.com/" },
    { id: "dlv_22", tries: 12, url: null },
  ]
  expect(tableLines(rows, COLUMNS, PLAIN)).toEqual([
    "ID      TRIES  URL",
    "dlv_1       3  https://example.com/",
    "dlv_22     12  –",
  ])
})

test("there may be more rows than a call can have arguments", () => {
  const rows = Array.from({ length: 200_000 }, () => ({ id: "dlv_1", tries: 3 }))
  expect(tableLines(rows, COLUMNS, PLAIN)).toHaveLength(200_001)
})

test("on a narrow terminal the column that may be cut gives way, and the id stays whole", () => {
  const rows = [{ id: "dlv_12345678", tries: 1, url: `https://example.com/${"x".repeat(80)}` }]
  const lines = tableLines(rows, COLUMNS, { ...PLAIN, width: 40 })
  expect(lines[1]).toBe("dlv_12345678      1  https://example.co…")
  for (const line of lines) expect([...line].length).toBeLessThanOrEqual(40)
})

test("on a terminal that is too narrow for the ids, lines are cut and never wrap", () => {
  const rows = [{ id: "dlv_12345678", tries: 1, url: "https://example.com/" }]
  for (const line of tableLines(rows, COLUMNS, { ...PLAIN, width: 15 }))
    expect([...line].length).toBeLessThanOrEqual(15)
})

const ID = "dlv_3MG8Bjk00caZpBW8XbxZSCNPmgU"

test("ids are shortened and columns that matter less left out before what matters is cut", () => {
  const columns: readonly Column<null>[] = [
    { title: "ID", value: () => ID, short: shortId },
    { title: "TYPE", value: () => "invoice.paid", cut: true, minor: true },
    { title: "TRIES", value: () => 3, right: true },
    { title: "URL", value: () => "https://example.com/hooks", cut: true, least: 16 },
    { title: "ERROR", value: () => "HTTP 500: out of order", cut: true, least: 16 },
  ]
  const lines = (width: number | null) => {
    let isShortened = false
    const [, line] = tableLines([null], columns, { ...PLAIN, width }, () => {
      isShortened = true
    })
    return [line, isShortened]
  }
  const whole = `${ID}  invoice.paid      3  https://example.com/hooks  HTTP 500: out of order`
  expect(lines(null)).toEqual([whole, false])
  expect(lines(whole.length)).toEqual([whole, false])
  const short = "dlv_…CNPmgU  invoice.paid      3  https://example.com/hooks  HTTP 500: out of order"
  expect(lines(83)).toEqual([short, true])
  expect(lines(60)).toEqual(["dlv_…CNPmgU      3  https://example.co…  HTTP 500: out of o…", true])
  for (const width of [20, 30, 40]) expect([...(lines(width)[0] as string)].length).toBeLessThanOrEqual(width)
})

test("an id is shortened to its kind and its end, and nothing else is", () => {
  expect(shortId(ID)).toBe("dlv_…CNPmgU")
  for (const other of ["main", "dlv_1", "https://example.com/", "–"]) expect(shortId(other)).toBe(other)
})

test("a time is shortened to how far away it is", () => {
  const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
  expect(shortTime(at(3660))).toBe("in 1h 1m")
  expect(shortTime(at(-7200))).toBe("2h ago")
  expect(shortTime("–")).toBe("–")
})

test("what a receiver answered cannot move the cursor or begin a line", () => {
  const rows = [{ id: "\x1b[2Ja\nb", tries: 1, url: "\u202e" }]
  expect(tableLines(rows, COLUMNS, PLAIN)[1]).toBe("\\x1b[2Ja\\x0ab      1  \\u{202e}")
  expect(recordLines({ answer: { body: "\x1b[2J" } }, PLAIN)[0]).not.toContain("\x1b")
})

test("colours are put around cells that have their width already", () => {
  const paint = (text: string, kind: string) => `<${kind}>${text}</>`
  const columns: readonly Column<string>[] = [
    { title: "STATUS", value: (status) => status },
    { title: "NEXT", value: () => "now" },
  ]
  expect(tableLines(["dead", "delivered", "pending"], columns, { width: null, paint })).toEqual([
    "<title>STATUS     NEXT</>",
    "<bad>dead     </>  now",
    "<good>delivered</>  now",
    "pending    now",
  ])
})

test("a record shows each field on a line: lists by words, objects as JSON", () => {
  const record = {
    id: "app_1",
    tags: ["a", "b"],
    none: [],
    metadata: { plan: "gold" },
    paused: false,
    uid: null,
  }
  expect(recordLines(record, PLAIN)).toEqual([
    "id        app_1",
    "tags      a, b",
    "none      –",
    'metadata  {"plan":"gold"}',
    "paused    no",
    "uid       –",
  ])
})

test("times are shown to the second, as --since takes them", () => {
  expect(time("2026-03-01T12:00:00.123Z")).toBe("2026-03-01T12:00:00Z")
  expect(time(null)).toBe(null)
})
