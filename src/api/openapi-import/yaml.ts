/** Parses YAML on a separate thread with a timeout: a malicious text cannot block the server. */
import { Worker } from "node:worker_threads"
import { describe, invalid } from "../../core/errors.ts"
import type { FromYamlThread } from "./yaml-thread.ts"

const FILE = import.meta.url.endsWith(".ts") ? "./yaml-thread.ts" : "./yaml-thread.js"
const LONGEST_MS = 5000
const MOST_MEGABYTES = 256

/** One parser at a time: several could occupy every core. */
let turn: Promise<unknown> = Promise.resolve()

export function readYaml(text: string, field: string): Promise<unknown> {
  const reading = turn.then(() => readNow(text, field))
  turn = reading.catch(() => {})
  return reading
}

async function readNow(text: string, field: string): Promise<unknown> {
  const worker = new Worker(new URL(FILE, import.meta.url), {
    workerData: text,
    // The program's own options, such as --input-type, must not apply to the thread.
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEGABYTES },
  })
  const { promise, resolve, reject } = Promise.withResolvers<FromYamlThread>()
  const deadline = setTimeout(() => resolve({ problem: "it takes too long to read" }), LONGEST_MS)
  worker.once("message", resolve).once("error", (error) => resolve({ problem: describe(error) }))
  worker.once("exit", () => reject(new Error("the thread that reads YAML has ended")))
  const answer = await promise.finally(() => {
    clearTimeout(deadline)
    return worker.terminate()
  })
  if ("json" in answer) return JSON.parse(answer.json)
  throw invalid(field, `is neither JSON nor YAML that can be read: ${answer.problem}`)
}
