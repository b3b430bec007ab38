/** docs/relay-protocol.md against the code: kinds, fields, close codes, limits, and examples that the agent reads. */
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { closedWith, refusedBy } from "../../src/agent/connection-end.ts"
import { readServerFrame } from "../../src/agent/server-frame.ts"
import * as protocol from "../../src/core/relay-protocol.ts"

const ROOT = new URL("../../", import.meta.url)
const page = readFileSync(new URL("docs/relay-protocol.md", ROOT), "utf8")
const source = readFileSync(new URL("src/core/relay-protocol.ts", ROOT), "utf8")

/** The fields of each kind, as the types have them. A body is one of two fields. */
const typed = new Map(
  [...source.matchAll(/^export (?:interface|type) (\w+)Frame (?:= (EncodedBody) & )?\{\n(.*?)^\}/gms)].map(
    ([, , isEncoded, members]) => {
      const fields = [...members!.matchAll(/^ {2}readonly (\w+):/gm)].map(([, field]) => field!)
      const [, kind] = /readonly kind: "(\w+)"/.exec(members!)!
      return [kind!, isEncoded === undefined ? fields : [...fields, "body"]]
    },
  ),
)

const sections = new Map(
  [...page.matchAll(/^### (\w+)\n(.*?)(?=^##)/gms)].map(([, kind, text]) => [kind!, text!]),
)

const exampleOf = (kind: string) => JSON.parse(/```json\n(.*?)```/s.exec(sections.get(kind)!)![1]!)

/** The cells of a table's first column, without their backticks. */
function column(text: string, head: string): string[] {
  const [, rows = ""] = text.split(`| ${head} |`, 2)
  return rows
    .split("\n\n", 1)[0]!
    .split("\n")
    .slice(2)
    .map((row) => row.split("|")[1]!.trim())
}

test("every kind of frame has a section, and nothing else has", () => {
  expect([...typed.keys()]).toHaveLength(9)
  expect([...sections.keys()].sort()).toEqual([...typed.keys()].sort())
})

test("every section has an example with all fields, and a table of them", () => {
  for (const [kind, fields] of typed) {
    expect(Object.keys(exampleOf(kind)).sort(), kind).toEqual([...fields].sort())
    expect(exampleOf(kind).kind).toBe(kind)
    const named = column(sections.get(kind)!, "field | meaning").flatMap((cell) =>
      [...cell.matchAll(/`(\w+)`/g)].map(([, field]) => field!),
    )
    const others = named.filter((field) => field !== "base64")
    expect(others.sort(), kind).toEqual(fields.filter((field) => field !== "kind").sort())
  }
})

test("the agent reads the examples of the server's frames as they are", () => {
  for (const kind of ["welcome", "event", "settled", "error", "drain"])
    expect(readServerFrame(JSON.stringify(exampleOf(kind)))).toEqual(exampleOf(kind))
})

test("the close codes are those of the protocol, and the agent connects again where the page says so", () => {
  const rows = [...page.matchAll(/^\| (\d{4}) \| .* \| (yes|no).* \|$/gm)]
  expect(rows.map(([, code]) => Number(code))).toEqual(Object.values(protocol.CLOSE).sort((a, b) => a - b))
  for (const [, code, again] of rows) expect(closedWith(Number(code), "").isFinal, code).toBe(again === "no")
})

test("the agent tries again after the refusals where the page says so", () => {
  const rows = [...page.matchAll(/^\| (\d(?:\d\d|xx)(?:, \d(?:\d\d|xx))*) \| .* \| (yes|no) \|$/gm)]
  expect(rows.length).toBeGreaterThan(4)
  for (const [, statuses, again] of rows)
    for (const status of statuses!.replaceAll("x", "0").split(", ").map(Number))
      expect(refusedBy({ status, body: "", location: undefined }, "wss://a").isFinal, `${status}`).toBe(
        again === "no",
      )
})

test("the limits and times are those of the protocol", () => {
  const { MOST_AGENT_FRAME_BYTES, MOST_RESPONSE_BYTES, MOST_WORKING_MS, MOST_CREDIT } = protocol
  for (const value of [MOST_AGENT_FRAME_BYTES, MOST_RESPONSE_BYTES, `${MOST_WORKING_MS} ms`, MOST_CREDIT])
    expect(page).toMatch(new RegExp(`^\\| .* \\| ${value}\\b`, "m"))
  const { HELLO_MS, HEARTBEAT_MS, DEAD_MS, RELAY_PATH, RELAY_PROTOCOL } = protocol
  expect(page).toContain(`within ${HELLO_MS / 1000} seconds`)
  expect(page).toContain(`ping every ${HEARTBEAT_MS / 1000} seconds`)
  expect(page).toContain(`nothing for ${DEAD_MS / 1000} seconds`)
  expect(page).toContain(`wss://SERVER${RELAY_PATH}`)
  expect(page).toContain(`subprotocol \`${RELAY_PROTOCOL}\``)
})
