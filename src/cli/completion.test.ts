/** Completion comes from the tables, and bash does with it what is expected. */
import { execFileSync } from "node:child_process"
import { expect, test } from "vitest"
import { placesOf } from "./completion.ts"
import { SHELLS, scriptFor } from "./completion-scripts.ts"
import { COMMANDS } from "./registry.ts"

const places = await placesOf(COMMANDS)

/** What bash offers behind these words; the last one is under way. */
function offered(...words: string[]): string[] {
  const line = ["posthorn", ...words].map((word) => `'${word}'`).join(" ")
  const script = `${scriptFor("bash", places)}
    COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _posthorn; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync("bash", ["-c", script], { encoding: "utf8", cwd: import.meta.dirname })
    .split("\n")
    .filter((word) => word !== "")
}

test("every command, every action and every flag has its place", () => {
  expect(offered("")).toEqual([...Object.keys(COMMANDS), "help"])
  expect(offered("help", "ap")).toEqual(["apps"])
  expect(offered("dead", "")).toEqual(["list", "groups", "count", "retry", "discard"])
  expect(offered("dead", "re")).toEqual(["retry"])
  expect(offered("serve", "--po")).toEqual(["--port", "--poll-interval-ms"])
  expect(offered("send", "acme", "--c")).toEqual(["--content-type", "--channel", "--create-app", "--config"])
  expect(offered("completion", "")).toEqual([...SHELLS])
})

test("a flag's value is one of those it can have, a file, or left to the user", () => {
  expect(offered("keys", "create", "x", "--scope", "")).toEqual(["admin", "application", "read"])
  expect(offered("deliveries", "list", "--status", "de")).toEqual(["delivered", "dead"])
  expect(offered("send", "acme", "--file", "completion.test")).toEqual(["completion.test.ts"])
  expect(offered("send", "acme", "--type", "")).toEqual([])
})

test("the other shells' scripts name the same words", () => {
  for (const shell of ["zsh", "fish"] as const) {
    const script = scriptFor(shell, places)
    for (const { words, flags } of places)
      for (const { name } of [...words, ...flags]) expect(script).toContain(name.replace(/^--/, ""))
  }
})

test("an apostrophe in a description ends no quotation", () => {
  const [place] = [{ at: "", words: [{ name: "bench", about: "the project's: all" }], flags: [] }]
  expect(scriptFor("zsh", [place!])).toContain("'bench:the project'\\''s\\: all'")
  expect(scriptFor("fish", [place!])).toContain("-d 'the project\\'s: all'")
})
