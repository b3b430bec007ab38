/**
 * Detaches partitions whose time has come, without blocking other statements. Attempts and idempotency keys are dropped; a day of deliveries
 * is set aside, because its messages are removed row by row.
 */
import { generationAt, KEPT_GENERATIONS } from "../idempotency.ts"
import { disconnect } from "./client.ts"
import type { Database, Runner } from "./connection.ts"
import { isCanceled, isLockTimeout } from "./errors.ts"
import { asideName, DAY_MS, lockPartitions } from "./partitions.ts"
import { unnamed } from "./statement.ts"

/**
 * How long to wait for a reader or a dump of the table. Nobody can create a partition meanwhile, so it is well below the timeout of a
 * statement.
 */
const PATIENCE_MS = 2000
/** Several readers may lock a table one after the other. */
const LONGEST_MS = 8000
/** Releases the lock when this process froze or lost the network. */
const HOLD = unnamed("SET LOCAL idle_in_transaction_session_timeout = '10s'")

const DELIVERIES = "webhook_deliveries_done"

interface Table {
  readonly name: string
  readonly parent: string
  readonly value: number
  readonly state: "attached" | "detaching" | "detached" | "aside"
}

const FIND = unnamed(`
    SELECT c.relname AS name, t.parts[1] AS parent, t.parts[3]::int AS value,
           CASE WHEN t.parts[2] IS NOT NULL THEN 'aside'
                WHEN i.inhdetachpending THEN 'detaching'
                WHEN i.inhrelid IS NOT NULL THEN 'attached'
                ELSE 'detached' END AS state
      FROM pg_class c
      CROSS JOIN LATERAL regexp_match(c.relname, '^(${DELIVERIES}|attempts|idempotency)_(aside_)?([0-9]+)$') AS t(parts)
      LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
     WHERE c.relkind = 'r' AND t.parts IS NOT NULL
       AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'attempts'::regclass)
     ORDER BY t.parts[3]::int, t.parts[1] DESC`)

/**
 * Returns the tables that are set aside. Further days are detached when these are done: an old day may still get rows, and each would have to
 * create the table again.
 */
export function detachDue(database: Database, now: number): Promise<string[]> {
  return database.transactionCalmly(async (runner) => {
    await runner.run(HOLD, [])
    await lockPartitions(runner, database.schema)
    const tables = (await runner.run(FIND, [])) as unknown as Table[]
    const aside = tables.filter(isSetAside).map(({ name }) => name)
    const due = aside.length > 0 ? [] : tables.filter((table) => isDue(table, now))
    return due.length > 0 ? detach(database, runner, due) : aside
  })
}

function isSetAside({ parent, state }: Table): boolean {
  return state === "aside" && parent === DELIVERIES
}

/** Including tables of an earlier run that was interrupted. */
function isDue({ parent, value, state }: Table, now: number): boolean {
  if (state !== "attached") return true
  if (parent === "idempotency") return value <= generationAt(now) - KEPT_GENERATIONS
  return value * DAY_MS <= now
}

async function detach(database: Database, lock: Runner, tables: readonly Table[]): Promise<string[]> {
  const aside: string[] = []
  // A connection of its own, for its settings, and because DETACH CONCURRENTLY cannot run in a transaction.
  const client = await database.connect(() => {}, LONGEST_MS + PATIENCE_MS)
  const run = async (text: string) => {
    // Keeps the locking transaction from its idle timeout.
    await lockPartitions(lock, database.schema)
    await client.query(database.schema.bindText(text))
  }
  try {
    await client.query(`SET lock_timeout = ${PATIENCE_MS}; SET statement_timeout = ${LONGEST_MS}`)
    // A parent detaches one table at a time: the one that an earlier run began with comes first.
    for (const table of tables.toSorted((a, b) => Number(isHalfway(b)) - Number(isHalfway(a)))) {
      const { name, parent, value, state } = table
      if (state === "attached") await run(`ALTER TABLE ${parent} DETACH PARTITION ${name} CONCURRENTLY`)
      if (state === "detaching") await run(`ALTER TABLE ${parent} DETACH PARTITION ${name} FINALIZE`)
      if (parent !== DELIVERIES) await run(`DROP TABLE ${name}`)
      else {
        const to = asideName(parent, value)
        await run(`ALTER TABLE ${name} RENAME TO ${to}`)
        aside.push(to)
      }
    }
  } catch (error) {
    if (!isLockTimeout(error) && !isCanceled(error)) throw error
  } finally {
    await disconnect(client)
  }
  return aside
}

function isHalfway({ state }: Table): boolean {
  return state === "detaching"
}
