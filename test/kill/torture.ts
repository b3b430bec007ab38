/**
 * Kills the program again and again while it accepts and delivers, then checks that nothing accepted is missing:
 * `npm run torture -- --rounds 200 --seed 42`, on an empty database with `--store postgres://…` and `--schedule redis://…`. With
 * `--images 40`, power cuts and failed syncs of an SQLite file instead, with images of 40 moments in each round. The test suite does a few
 * rounds of the same.
 */
import { parseArgs } from "node:util"
import { crashAtRandom } from "../crash/crash.ts"
import { type Ground, postgresGround } from "../support/ground.ts"
import { Campaign } from "./campaign.ts"
import type { Summary } from "./oracle-outcome.ts"
import { seeded } from "./random.ts"

const EARLIEST_MS = 50
/** On a server long enough for the lease of the one before to run out, and for some work after that. */
const LATEST_MS = { sqlite: 800, postgres: 2500 }
/** Every so many rounds the time runs from the start of the process: killed while it opens the file and recovers. */
const EARLY_EVERY = 4

export interface TortureOptions {
  readonly rounds: number
  readonly seed: number
  /** A file unless told. */
  readonly ground?: Ground | undefined
  readonly tell?: (text: string) => void
}

export async function torture({ rounds, seed, ground, tell = () => {} }: TortureOptions): Promise<Summary> {
  const random = seeded(seed)
  const campaign = await Campaign.start(random, ground)
  const latestMs = LATEST_MS[campaign.ground.kind]
  try {
    for (let round = 1; round <= rounds; round++) {
      const program = campaign.launch()
      if (round % EARLY_EVERY !== 0) await program.line(/^ready/)
      await pass(EARLIEST_MS + random() * (latestMs - EARLIEST_MS))
      await program.kill()
      if (program.stderr !== "" || campaign.refused.length > 0)
        throw new Error(`the program complained: ${program.stderr}${campaign.refused}`)
      await campaign.checkCrashed()
      tell(`round ${round}: ${campaign.accepted.size} accepted, ${campaign.ledger.entries.length} requests`)
    }
    await campaign.finish()
    return await campaign.checkOutcome()
  } catch (error) {
    throw new Error(`the torture with seed ${seed} found: ${(error as Error).message}`, { cause: error })
  } finally {
    await campaign.close()
  }
}

/** The moment of the kill is what is random here: this is the one place where a test lets time pass. */
function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "100" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      store: { type: "string" },
      schedule: { type: "string" },
      images: { type: "string" },
    },
  })
  const [rounds, seed] = [Number(values.rounds), Number(values.seed)]
  if (!(Number.isInteger(rounds) && rounds > 0 && Number.isInteger(seed)))
    throw new Error("--rounds and --seed are whole numbers, and there is at least one round")
  console.log(`torture: ${rounds} rounds, seed ${seed}`)
  const { store, schedule } = values
  if (store === undefined ? schedule !== undefined : !/^postgres(ql)?:/.test(store))
    throw new Error("--store is the URL of an empty PostgreSQL database; --schedule goes with it")
  if (values.images !== undefined) {
    if (store !== undefined) throw new Error("--images is for SQLite files, and goes without --store")
    for (let round = 1; round <= rounds; round++) {
      const { images } = await crashAtRandom(seed + round, Number(values.images))
      console.log(`round ${round}: seed ${seed + round}, ${images} images hold everything acknowledged`)
    }
    process.exit(0)
  }
  const options = store && { store, ...(schedule === undefined ? {} : { schedule }) }
  const ground = options ? postgresGround(options) : undefined
  console.log(await torture({ rounds, seed, ground, tell: console.log }))
  await ground?.close()
}
