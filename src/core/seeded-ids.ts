/** Ids that are the same when a request is repeated: after a crash, the repeat finds the rows that the first run made. */
import { createHash } from "node:crypto"
import { createIds, type Ids, type RandomBytes } from "./ids.ts"

/** The same seed and time give the same ids in the same order. */
export function seededIds(seed: string, atMs: number): Ids {
  const ids = createIds(seededBytes(seed))
  return { make: (prefix) => ids.make(prefix, atMs) }
}

function seededBytes(seed: string): RandomBytes {
  let draws = 0
  return (into) => {
    const stream = createHash("shake256", { outputLength: into.length }).update(`${draws++}:${seed}`)
    into.set(stream.digest())
  }
}
