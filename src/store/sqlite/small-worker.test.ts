import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { expect, test } from "vitest"

/** A thread that fills its young space as far as it may, and tells how far that was. */
const FILLS = `
  import { getHeapSpaceStatistics } from "node:v8"
  import { parentPort } from "node:worker_threads"
  let most = 0
  const alive = Array.from({ length: 10000 })
  for (let i = 0; i < 3000000; i++) {
    alive[i % alive.length] = { i }
    if (i % 10000 > 0) continue
    const { physical_space_size } = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")
    most = Math.max(most, physical_space_size / 2 ** 20)
  }
  parentPort.postMessage(most)`

const PROGRAM = `
  import { once } from "node:events"
  import { Worker } from "node:worker_threads"
  import { startSmallWorker } from ${JSON.stringify(new URL("./small-worker.ts", import.meta.url).href)}
  const file = new URL("data:text/javascript," + encodeURIComponent(${JSON.stringify(FILLS)}))
  const ours = [startSmallWorker(file, {}), startSmallWorker(file, {})]
  const most = (await Promise.all(ours.map((worker) => once(worker, "message")))).flat()
  most.push(...(await once(new Worker(file), "message")))
  console.log(JSON.stringify(most))`

test("a thread of the store has little young space, also where the program has an option for it, and others what the option says", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...["--max-semi-space-size=4", "--input-type=module", "--eval", PROGRAM],
  ])
  const [writer, reader, stranger] = JSON.parse(stdout) as [number, number, number]
  expect(Math.max(writer, reader)).toBeLessThanOrEqual(4)
  expect(stranger).toBeGreaterThan(4)
  // Without the option it would be twice as much.
  expect(stranger).toBeLessThanOrEqual(8)
})
