/** Parses YAML in a process of its own, with limits of time and memory: a malicious text can neither block the server nor end it. */
import { spawn } from "node:child_process"
import { json } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { invalid } from "../../core/errors.ts"
import type { FromYamlProcess } from "./yaml-process.ts"

const FILE = import.meta.url.endsWith(".ts") ? "./yaml-process.ts" : "./yaml-process.js"
const LIMITS = { longestMs: 5000, mostMegabytes: 256 }

/** One parser at a time: several could occupy every core. */
let turn: Promise<unknown> = Promise.resolve()

export function readYaml(text: string, field: string, limits = LIMITS): Promise<unknown> {
  const reading = turn.then(() => readNow(text, field, limits))
  turn = reading.catch(() => {})
  return reading
}

async function readNow(text: string, field: string, { longestMs, mostMegabytes }: typeof LIMITS) {
  // Not a thread: V8 ends the whole process if a thread allocates faster than its limit can stop it.
  const child = spawn(
    process.execPath,
    // The parser recurses: a text as deep as is allowed needs more than the stack's default, 984 kB.
    [
      "--stack-size=3900",
      `--max-old-space-size=${mostMegabytes}`,
      fileURLToPath(new URL(FILE, import.meta.url)),
    ],
    { stdio: ["pipe", "pipe", "ignore"], env: {} },
  )
  const { promise, resolve, reject } = Promise.withResolvers<FromYamlProcess>()
  const deadline = setTimeout(() => resolve({ problem: "it takes too long to read" }), longestMs)
  const outOfMemory = () => resolve({ problem: `it takes more than ${mostMegabytes} MB to read` })
  child.once("error", reject).stdin.once("error", () => {})
  json(child.stdout).then((answer) => resolve(answer as FromYamlProcess), outOfMemory)
  child.stdin.end(text)
  const answer = await promise.finally(() => {
    clearTimeout(deadline)
    child.kill("SIGKILL")
  })
  if ("json" in answer) return JSON.parse(answer.json)
  throw invalid(field, `is neither JSON nor YAML that can be read: ${answer.problem}`)
}
