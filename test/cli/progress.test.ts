/** How far a command has come, on a terminal and elsewhere. */
import type { WriteStream } from "node:tty"
import { expect, test } from "vitest"
import { progressOn } from "../../src/cli/progress.ts"

/** The text that is written to an output of this kind. */
function output(kind: Partial<WriteStream>): { stream: WriteStream; written: string[] } {
  const written: string[] = []
  const write = (text: string) => written.push(text) > 0
  return { stream: { ...kind, write } as unknown as WriteStream, written }
}

test("a terminal gets a bar that is drawn in place, and its line back at the end", () => {
  const { stream, written } = output({ isTTY: true, columns: 100 })
  const progress = progressOn(stream)
  progress.show("messages", 50, 100)
  progress.show("messages", 51, 100)
  progress.show("messages", 100, 100)
  progress.end()
  expect(written).toEqual([
    `\r\x1b[K${"█".repeat(15)}${"░".repeat(15)} messages            50 % (50 of 100 rows)`,
    `\r\x1b[K${"█".repeat(30)} messages            100 % (100 of 100 rows)`,
    "\r\x1b[K",
  ])
})

test("a pipe, and a terminal that is too narrow, get a line for each thing that begins", () => {
  for (const kind of [{}, { isTTY: true, columns: 40 }]) {
    const { stream, written } = output(kind)
    const progress = progressOn(stream)
    progress.show("messages", 0, 200)
    progress.show("messages", 100, 200)
    progress.show("attempts", 150, 200)
    progress.end()
    expect(written).toEqual([
      "messages            0 % (0 of 200 rows)\n",
      "attempts            75 % (150 of 200 rows)\n",
    ])
  }
})

test("nothing to do is all done", () => {
  const { stream, written } = output({})
  progressOn(stream).show("messages", 0, 0)
  expect(written).toEqual(["messages            100 % (0 of 0 rows)\n"])
})
