/**
 * A thread with little young space. What SQLite's threads make is garbage at once, but V8 lets them grow to what the program's main thread
 * may have: 24 MB more, of which none is in the processor's cache when it comes round again.
 */
import { setFlagsFromString } from "node:v8"
import { Worker, type WorkerOptions } from "node:worker_threads"

/** V8 has three times a semi-space: two of them, and as much for large objects. */
const YOUNG_SPACE_MB = 3 * 2
const SIZE = /--max[-_]semi[-_]space[-_]size[= ](\d+)/g

let starting = 0

export function startSmallWorker(file: URL, options: WorkerOptions): Worker {
  // Given to the process, the option counts for every thread, whatever limits it has: it is taken back until the thread is there.
  const given = sizeOfProcess()
  if (given !== null && starting++ === 0) setSize(0)
  const worker = new Worker(file, {
    ...options,
    // Options of the program are not for this thread: --input-type would refuse its file, --import would load the program's modules again.
    execArgv: [],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_SPACE_MB },
  })
  const started = () => {
    worker.off("online", started)
    worker.off("exit", started)
    if (given !== null && --starting === 0) setSize(given)
  }
  worker.on("online", started)
  worker.on("exit", started)
  return worker
}

function sizeOfProcess(): number | null {
  const given = [process.env.NODE_OPTIONS ?? "", ...process.execArgv].join(" ")
  const last = [...given.matchAll(SIZE)].at(-1)
  return last === undefined ? null : Number(last[1])
}

function setSize(megabytes: number): void {
  setFlagsFromString(`--max-semi-space-size=${megabytes}`)
}
