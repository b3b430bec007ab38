import { expect, test } from "vitest"
import { readYaml } from "./yaml.ts"

const lines = (count: number, line: (i: number) => string) => Array.from({ length: count }, (_, i) => line(i))
/** Each level stands for two of the parser's. */
const stairs = (count: number) => lines(count, (i) => `${" ".repeat(i)}a:\n${" ".repeat(i)}-`).join("\n")
const bomb = ["a: &a [x,x,x]", ...[..."bcdefghijk"].map((name, i) => `${name}: &${name} [${nine(i)}]`)]
function nine(i: number): string {
  return Array(9).fill(`*${"abcdefghij"[i]}`).join(",")
}

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

test("one that takes long is given up, while the process does other things", async () => {
  let turns = 0
  const turn = () => {
    turns++
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  await expect(readYaml("]".repeat(300_000), "specRaw")).rejects.toThrow(/takes too long/)
  clearImmediate(next)
  expect(turns).toBeGreaterThan(1000)
})
