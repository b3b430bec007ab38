#!/usr/bin/env node
// The `posthorn` command, installed and in a clone. Plain JavaScript for Node 18 and later, so that an old Node gets a clear error.
import { existsSync, readFileSync } from "node:fs"

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
const wanted = /\d+\.\d+/.exec(engines.node)[0]
const [wantedMajor, wantedMinor] = wanted.split(".").map(Number)
const [major, minor] = process.versions.node.split(".").map(Number)
const source = new URL("../src/cli/main.ts", import.meta.url)
const isClone = existsSync(source)

if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) {
  await import(isClone ? source.href : "../dist/cli/main.js")
} else {
  const mend = isClone
    ? 'run "npm run setup", which puts one beside the dependencies, then "npm exec -- node bin/posthorn.mjs"'
    : "install a current one"
  console.error(
    `posthorn: Posthorn needs Node ${wanted} or newer, and this is Node ${process.versions.node}: ${mend}`,
  )
  process.exitCode = 1
}
