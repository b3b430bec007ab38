import { expect, test } from "vitest"
import { readYaml } from "./yaml.ts"

const lines = (count: number, line: (i: number) => string) => Array.from({ length: count }, (_, i) => line(i))
/** Each level stands for two of the parser's. */
const stairs = (count: number) => lines(count, (i) => `${" ".repeat(i)}a:\n${" ".repeat(i)}-`).join("\n")
const bomb = ["a: &a [x,x,x]", ...[..."bcdefghijk"].map((name, i) => `${name}: &${name} [${nine(i)}]`)]
function nine(i: number): string {
  return Array(9).fill(`*${"abcdefghij"[i]}`).join(",")
}

/** The parser keeps an error for each bracket: gigabytes and minutes. */
const COSTLY = "]".repeat(300_000)

test.each([
  ["is not YAML", "a: [", /end with a \]/],
  ["has brackets in brackets in brackets", "[".repeat(100_000), /too deep/],
  ["closes with the wrong ones", "[}".repeat(100_000), /too deep/],
  ["has items in items", "- ".repeat(10_000), /too deep/],
  ["has keys in keys", "? ".repeat(10_000), /too deep/],
  ["goes down line by line", stairs(1000), /too deep/],
  ["has objects for keys", `${"{".repeat(100)}a${": 1}".repeat(100)}`, /keys must be strings/],
  ["explodes", bomb.join("\n"), /alias/],
])("a text that %s is refused at once", async (_what, text, problem) => {
  await expect(readYaml(text, "specRaw")).rejects.toMatchObject({
    code: "invalid_input",
    field: "specRaw",
    message: expect.stringMatching(problem),
  })
})

test("as deep as is allowed is read", async () => {
  expect(await readYaml("[".repeat(128) + "]".repeat(128), "specRaw")).toHaveLength(1)
  expect(await readYaml(stairs(500), "specRaw")).toHaveProperty("a")
})

test("a text that takes long is given up, while the process does other things", async () => {
  let turns = 0
  const turn = () => {
    turns++
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  const limits = { longestMs: 500, mostMegabytes: 4000 }
  await expect(readYaml(COSTLY, "specRaw", limits)).rejects.toThrow(/takes too long/)
  clearImmediate(next)
  expect(turns).toBeGreaterThan(100)
})

test("a text that takes much memory is given up", async () => {
  const limits = { longestMs: 25_000, mostMegabytes: 32 }
  await expect(readYaml(COSTLY, "specRaw", limits)).rejects.toThrow(/takes more than 32 MB/)
})

test("a text is given up within the limits of the server", async () => {
  await expect(readYaml(COSTLY, "specRaw")).rejects.toMatchObject({ code: "invalid_input", field: "specRaw" })
})
