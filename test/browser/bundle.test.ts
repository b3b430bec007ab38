/** The size of the bundles: an operator who is woken at night may have a slow network. */
import { readFileSync } from "node:fs"
import { gzipSync } from "node:zlib"
import { expect, test } from "vitest"

const FOLDER = new URL("../../dist/dashboard/", import.meta.url)
const MOST_BYTES = 120_000

/** The scripts that an entry loads, at once or later: those in its markup, and those that scripts name. */
function scriptsOf(entry: string): Map<string, Buffer> {
  const found = new Map<string, Buffer>()
  const read = (text: string) => {
    for (const [, name] of text.matchAll(/(?:assets\/|\.\/)([\w.-]+\.js)\b/g)) {
      if (found.has(name!)) continue
      const script = readFileSync(new URL(`assets/${name}`, FOLDER))
      found.set(name!, script)
      read(script.toString())
    }
  }
  read(readFileSync(new URL(entry, FOLDER), "utf8"))
  return found
}

test.each(["index.html", "portal.html"])("all script of %s is at most 120 kB, compressed", (entry) => {
  const sizes = [...scriptsOf(entry)].map(([name, script]) => [name, gzipSync(script).length] as const)
  const total = sizes.reduce((sum, [, size]) => sum + size, 0)
  expect(total, JSON.stringify(sizes)).toBeLessThanOrEqual(MOST_BYTES)
})

test.each(["index.html", "portal.html"])("%s is built for production, whatever runs the build", (entry) => {
  const names = [...scriptsOf(entry)]
    .filter(([, script]) => script.includes("fileName:"))
    .map(([name]) => name)
  expect(names).toEqual([])
})
