/** Completion comes from the tables of the commands. Bash runs its own script and zsh's; fish's is read line by line. */
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
  expect(offered("serve", "--po")).toEqual(["--port", "--poll-interval-ms", "--portal-frame-ancestors"])
  expect(offered("send", "acme", "--c")).toEqual(["--content-type", "--channel", "--create-app", "--config"])
  expect(offered("completion", "")).toEqual([...SHELLS])
})

test("a flag's value is one of those it can have, a file, or left to the user", () => {
  expect(offered("keys", "create", "x", "--scope", "")).toEqual(["admin", "application", "read", "agent"])
  expect(offered("deliveries", "list", "--status", "de")).toEqual(["delivered", "dead"])
  expect(offered("send", "acme", "--file", "completion.test")).toEqual(["completion.test.ts"])
  expect(offered("send", "acme", "--type", "")).toEqual([])
})

/** What zsh offers behind each of these lines. Bash runs the script: what differs is that zsh's arrays begin at 1. */
function offeredByZsh(lines: readonly (readonly string[])[]): string[] {
  const calls = lines.map(
    (line) => `words=('' posthorn ${line.join(" ")} ''); CURRENT=${line.length + 2}; _posthorn; echo`,
  )
  const script = `
    compdef() { :; }
    _files() { printf FILE; }
    compadd() { printf '%s ' "\${@:2}"; }
    _describe() { printf '%s ' "\${found[@]%%:*}"; }
    ${scriptFor("zsh", places)}
    ${calls.join("\n")}`
  const offers = execFileSync("bash", { input: script, encoding: "utf8" }).trimEnd().split("\n")
  return offers.map((offer) => offer.trim())
}

test("zsh offers every command, action and flag at its place, and behind a flag its values", () => {
  const expected = places.flatMap(({ at, words, flags }) => {
    const line = at === "" ? [] : at.split(" ")
    const names = [...words, ...flags].map(({ name }) => name).join(" ")
    const values = flags.map(({ name, value }) => {
      const offer =
        value === null ? names : value === "file" ? "FILE" : value === "any" ? "" : value.join(" ")
      return { line: [...line, name], offer }
    })
    return [{ line, offer: names }, ...values]
  })
  const offered = offeredByZsh(expected.map(({ line }) => line))
  expect(expected.map(({ line }, i) => ({ line, offer: offered[i] }))).toEqual(expected)
})

test("fish is told every command, action and flag with its place, and of a flag its values", () => {
  const line =
    /^complete -c posthorn -n "(?:test .+ -eq 1|__posthorn_(is|has) (\d) (.+?))" -([al]) (\S+)( -r -F| -x)?(?: -a '(.+?)')? -d '/gm
  const told = [...scriptFor("fish", places).matchAll(line)].map((match) => {
    const [, where = "is", depth = "0", at = "", kind, name, takes, values] = match
    const value = takes === undefined ? null : takes === " -r -F" ? "file" : (values?.split(" ") ?? "any")
    return kind === "a" ? { at, depth, where, name } : { at, depth, where, name: `--${name}`, value }
  })
  const expected = places.flatMap(({ at, words, flags }) => {
    const depth = at === "" ? "0" : `${at.split(" ").length}`
    return [
      ...words.map(({ name }) => ({ at, depth, where: "is", name })),
      ...flags.map(({ name, value }) => ({ at, depth, where: "has", name, value })),
    ]
  })
  expect(told).toEqual(expected)
})

test("an apostrophe in a description ends no quotation", () => {
  const [place] = [{ at: "", words: [{ name: "bench", about: "the project's: all" }], flags: [] }]
  expect(scriptFor("zsh", [place!])).toContain("'bench:the project'\\''s\\: all'")
  expect(scriptFor("fish", [place!])).toContain("-d 'the project\\'s: all'")
})
