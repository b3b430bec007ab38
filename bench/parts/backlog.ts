/** The cost of waiting and finished rows: the same traffic on a full file and on an empty one. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { rowsIn } from "../harness/figures.ts"
import { fill } from "../harness/fill.ts"
import { Library, temporaryFolder } from "../harness/library.ts"
import { race } from "../harness/rounds.ts"

const ENDPOINTS = 100
const YEAR_MS = 365 * 86_400_000

async function measure(bench: Bench): Promise<Values> {
  const rows = rowsIn(bench.quick)
  const folder = temporaryFolder()
  const path = join(folder, "full.db")
  await makeFull(bench, path, rows)
  const full = await Library.open(bench.receiver, { store: `sqlite:${path}` })
  const empty = await Library.open(bench.receiver)
  try {
    // The endpoints of the waiting rows.
    const [onFull, onEmpty] = [await full.traffic("app", ENDPOINTS), await empty.traffic("app", ENDPOINTS)]
    const rounds = await race(
      { full: (count) => onFull.run(count), empty: (count) => onEmpty.run(count) },
      bench.turns,
    )
    return {
      ...compared("backlog", rounds.full, "empty", rounds.empty),
      "backlog.waitingRows": rows,
      "backlog.finishedRows": rows,
    }
  } finally {
    await full.close()
    await empty.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function makeFull(bench: Bench, path: string, rows: number): Promise<void> {
  const library = await Library.open(bench.receiver, { store: `sqlite:${path}` })
  const traffic = await library.traffic("app", ENDPOINTS)
  await traffic.run(ENDPOINTS)
  const deliverAt = Date.now() + YEAR_MS
  await library.posthorn.sendBatch(
    "app",
    Array.from({ length: ENDPOINTS }, (_, i) => ({ ...traffic.message(i), payload: {}, deliverAt })),
  )
  await library.close()
  fill(path, [
    { of: "waiting", count: rows, firstOrdinal: 0 },
    { of: "delivered", count: rows, firstOrdinal: rows, message: { payload: "CAST('{}' AS BLOB)" } },
  ])
}

export const backlogPart: Part = { names: ["backlog.ratio"], run: measure }
