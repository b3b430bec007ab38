/** What cannot be taken back is asked first, and not done where nobody can be asked. */
import { PassThrough } from "node:stream"
import type { ReadStream, WriteStream } from "node:tty"
import { expect, test } from "vitest"
import { confirm, Declined, type Terminal } from "./confirm.ts"
import { UsageError } from "./usage-error.ts"

/** Somebody who types this, or a pipe. */
function terminal(typed: string, isTTY = true): { readonly terminal: Terminal; shown(): string } {
  const input = Object.assign(new PassThrough(), { isTTY }) as unknown as ReadStream
  const output = Object.assign(new PassThrough(), { isTTY }) as unknown as WriteStream
  ;(input as unknown as PassThrough).end(typed)
  const chunks: string[] = []
  output.on("data", (chunk) => chunks.push(String(chunk)))
  return { terminal: { input, output }, shown: () => chunks.join("") }
}

const preview = async () => "12 dead letters would be sent again."

test.each(["y\n", "yes\n", " Y \n"])("%j goes on, and what would happen was shown first", async (typed) => {
  const { terminal: asked, shown } = terminal(typed)
  await confirm(false, preview, asked)
  expect(shown()).toContain("12 dead letters would be sent again.\nGo on? [y/N] ")
})

test.each(["n\n", "\n", "yikes\n"])("%j does nothing", async (typed) => {
  await expect(confirm(undefined, preview, terminal(typed).terminal)).rejects.toThrow(Declined)
})

test("the end of the input does nothing", async () => {
  await expect(confirm(undefined, preview, terminal("").terminal)).rejects.toThrow(Declined)
})

test("where nobody can be asked it is refused, and says what --yes would do", async () => {
  const asked = confirm(undefined, preview, terminal("y\n", false).terminal)
  await expect(asked).rejects.toThrow(UsageError)
  await expect(asked).rejects.toThrow(
    "this needs --yes where nobody can be asked: 12 dead letters would be sent again.",
  )
})

test("--yes neither asks nor looks", async () => {
  const look = () => Promise.reject(new Error("looked"))
  await confirm(true, look, terminal("", false).terminal)
})

test("a name in the preview cannot act on the terminal", async () => {
  const { terminal: asked, shown } = terminal("y\n")
  await confirm(false, async () => "\x1b[2J would be deleted.", asked)
  expect(shown()).toContain("\\x1b[2J would be deleted.")
})
