/** The thread that copies the log into the file: it waits for its turn, and has nothing else to do. See `checkpoints.ts`. */
import { DatabaseSync } from "node:sqlite"
import { workerData } from "node:worker_threads"
import { TURN } from "./checkpoints.ts"

const { path, turn } = workerData as { readonly path: string; readonly turn: Int32Array }

const db = new DatabaseSync(path)
db.exec("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -64")
const copy = db.prepare("PRAGMA wal_checkpoint(PASSIVE)")

while (Atomics.load(turn, 0) !== TURN.end) {
  try {
    copy.get()
  } catch {
    // As SQLite does with its own: the log has everything, and what is wrong with the file shows in a commit.
  }
  Atomics.compareExchange(turn, 0, TURN.copiers, TURN.writers)
  Atomics.wait(turn, 0, TURN.writers)
}
db.close()
Atomics.store(turn, 0, TURN.ended)
Atomics.notify(turn, 0)
