/**
 * Kills the program again and again while it accepts and delivers, then checks that nothing accepted is missing:
 * `npm run torture -- --rounds 200 --seed 42`. The test suite does a few rounds of the same.
 */
import { parseArgs } from "node:util"
import { Campaign } from "./campaign.ts"
import type { Summary } from "./oracle-outcome.ts"
import { seeded } from "./random.ts"

const EARLIEST_MS = 50
const LATEST_MS = 800
/** Every so many rounds the time runs from the start of the process: killed while it opens the file and recovers. */
const EARLY_EVERY = 4

export interface TortureOptions {
  readonly rounds: number
  readonly seed: number
  readonly tell?: (text: string) => void
}

export async function torture({ rounds, seed, tell = () => {} }: TortureOptions): Promise<Summary> {
  const random = seeded(seed)
  const campaign = await Campaign.start(random)
  try {
    for (let round = 1; round <= rounds; round++) {
      const program = campaign.launch()
      if (round % EARLY_EVERY !== 0) await program.line(/^ready/)
      await pass(EARLIEST_MS + random() * (LATEST_MS - EARLIEST_MS))
      await program.kill()
      if (program.stderr !== "" || campaign.refused.length > 0)
        throw new Error(`the program complained: ${program.stderr}${campaign.refused}`)
      campaign.checkCopy()
      tell(`round ${round}: ${campaign.accepted.size} accepted, ${campaign.ledger.entries.length} requests`)
    }
    await campaign.finish()
    return campaign.checkOutcome()
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
    },
  })
  const [rounds, seed] = [Number(values.rounds), Number(values.seed)]
  if (!(Number.isInteger(rounds) && rounds > 0 && Number.isInteger(seed)))
    throw new Error("--rounds and --seed are whole numbers, and there is at least one round")
  console.log(`torture: ${rounds} rounds, seed ${seed}`)
  console.log(await torture({ rounds, seed, tell: console.log }))
}
