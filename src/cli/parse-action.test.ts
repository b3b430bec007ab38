/** What is typed becomes arguments and flags, or one sentence about what is wrong. */
import { expect, test } from "vitest"
import { action } from "./command.ts"
import { choice, clearable, clearableTexts, on, pairs, text, texts, wholeNumber } from "./flag.ts"
import { parse } from "./parse-action.ts"
import { UsageError } from "./usage-error.ts"

const THING = action({
  summary: "do a thing",
  args: [
    { name: "app", about: "whose" },
    { name: "extra", about: "more", optional: true },
  ],
  flags: {
    type: text("TYPE", ""),
    tag: texts("TAG", ""),
    uid: clearable("UID", ""),
    channel: clearableTexts("CHANNEL", ""),
    count: wholeNumber("N", ""),
    scope: choice(["admin", "read"], ""),
    metadata: pairs("KEY=VALUE", ""),
    header: pairs("NAME:VALUE", "", { between: ":" }),
    yes: on(""),
  },
  examples: [],
  run: async () => 0,
})

const read = (...typed: string[]) => parse("posthorn thing <app> [extra] [flags]", THING, typed)

test("arguments and flags are read in any order, each as its kind", () => {
  const typed = ["--type", "a.b", "acme", "--tag", "x", "--tag=y", "--count", "3", "--yes", "--scope", "read"]
  const more = ["--metadata", "plan=gold=9", "--header", "X-Team: billing", "--header", "X-Url: http://a"]
  expect(read(...typed, ...more)).toEqual({
    args: { app: "acme", extra: undefined },
    flags: {
      type: "a.b",
      tag: ["x", "y"],
      count: 3,
      yes: true,
      scope: "read",
      metadata: { plan: "gold=9" },
      header: { "X-Team": "billing", "X-Url": "http://a" },
    },
    help: false,
  })
})

test("an empty value takes away what can be taken away", () => {
  expect(read("acme", "--uid=", "--channel=").flags).toEqual({ uid: null, channel: null })
})

test("- is an argument, and behind -- everything is", () => {
  expect(read("acme", "-").args).toEqual({ app: "acme", extra: "-" })
  expect(read("acme", "--", "--yes").args).toEqual({ app: "acme", extra: "--yes" })
})

test("--help wins over everything that is missing", () => {
  expect(read("--help").help).toBe(true)
  expect(read("-h").help).toBe(true)
})

test.each([
  [[], "<app> is missing; it is posthorn thing <app> [extra] [flags]"],
  [[""], "<app> is missing; it is posthorn thing <app> [extra] [flags]"],
  [["a", "b", "c"], 'there is no place for "c" here; it is posthorn thing <app> [extra] [flags]'],
  [["a", "--tpye", "x"], "unknown flag --tpye; did you mean --type?"],
  [["a", "--serve=x"], "unknown flag --serve; did you mean --server?"],
  [["a", "--count", "many"], '--count must be a whole number, not "many"'],
  [["a", "--scope", "admn"], '--scope must be one of admin, read, not "admn"'],
  [["a", "--metadata", "plan"], '--metadata must be KEY=VALUE, not "plan"'],
  [["a", "--type", "x", "--type", "y"], "--type can be given once"],
  [["a", "--yes=no"], "Option '--yes' does not take an argument"],
  [["a", "--type"], "Option '--type <value>' argument missing"],
  [["a", "--\x1b[2J"], expect.not.stringContaining("\x1b")],
])("%j is refused with a sentence", (typed, sentence) => {
  const refused = () => read(...typed)
  expect(refused).toThrow(UsageError)
  expect(refused).toThrow(expect.objectContaining({ message: sentence }))
})
