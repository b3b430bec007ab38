/** PostgreSQL stores for tests, with deliveries in every state, and a way to type SQL beside them. */
import pg from "pg"
import { onTestFinished, vi } from "vitest"
import type { TestFetch } from "../../src/store/conformance/lanes.ts"
import { laneFetch, lanesOf, sample, settlement } from "../../src/store/conformance.ts"
import { openPostgresStore, type PostgresStore } from "../../src/store/postgres/store.ts"
import type { Delivery, Endpoint, NewMessage } from "../../src/store/store.ts"
import { SEARCH_PATH } from "./ground.ts"
import { migratedDatabase } from "./migrated-database.ts"

export const NOW = 1_900_000_000_000

export async function openStore(url: string): Promise<PostgresStore> {
  const store = await openPostgresStore({ url, name: "posthorn test" })
  onTestFinished(() => store.close())
  return store
}

/** A connection of an operator's own. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: SEARCH_PATH })
  client.on("error", () => {})
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** Resolves when so many connections wait for a lock. */
export async function waiting(client: pg.Client, count: number): Promise<void> {
  const text = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
  while ((await client.query(text)).rowCount! < count);
}

/** Asks for whatever is due. */
export function fetchOf({ id }: Endpoint, token = 1): TestFetch {
  return laneFetch(id, token, { limit: 1000, starting: 1000 })
}

/** The next statement of that name fails before the server has it. */
export function failOnce(
  store: PostgresStore,
  name: string,
  error = new Error("the statement failed"),
): void {
  instead(store, name, () => {
    throw error
  })
}

/** The next statement of that name commits, and its answer is lost. */
export function loseAnswer(store: PostgresStore, name: string): void {
  instead(store, name, async (run) => {
    await run()
    throw new Error("the connection broke")
  })
}

/** The next statement of that name commits, and its answer comes after `release`. `committed` resolves before. */
export function holdAnswer(store: PostgresStore, name: string) {
  const { promise: committed, resolve: commit } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  instead(store, name, async (run) => {
    const rows = await run()
    commit()
    await released
    return rows
  })
  return { committed, release }
}

type Run = PostgresStore["database"]["run"]

function instead(
  { database }: PostgresStore,
  name: string,
  work: (run: () => ReturnType<Run>) => ReturnType<Run>,
): void {
  const { run } = database
  database.run = async (statement, values) => {
    const asIs = () => run.call(database, statement, values)
    if (statement.name !== name) return asIs()
    database.run = run
    return work(asIs)
  }
}

/** A store with one endpoint, and a hand on it that sends, delivers and kills off. */
export async function stage(more: Partial<Endpoint> = {}) {
  const url = await migratedDatabase()
  const store = await openStore(url)
  const client = await connect(url)
  const application = sample.application()
  const endpoint = sample.endpoint(application.id, more)
  await store.createApplication(application)
  await store.createEndpoint(endpoint)
  let token = 0
  const query = async (text: string, values: unknown[] = []) => (await client.query(text, values)).rows
  const send = async (count = 1, message: Partial<NewMessage> = {}) => {
    await store.acceptMany(Array.from({ length: count }, () => sample.message(application.id, message)))
  }
  /** Sends what is due and answers with this status; a delivery that fails has one attempt only. */
  const attempt = async (
    status: number,
    purgeAt: number | null = null,
    of = endpoint,
  ): Promise<Delivery[]> => {
    const work = await lanesOf(store).fetch(fetchOf(of, ++token), NOW)
    const settlements = work.deliveries.map((delivery) => {
      const outcome = settlement(of.id, token, { ...delivery, maxAttempts: 1 }, status)
      return { ...outcome, change: { ...outcome.change, purgeAt } }
    })
    await lanesOf(store).settle(settlements)
    const { orgId } = application
    return Promise.all(work.deliveries.map(async ({ id }) => (await store.getDelivery(orgId, id))!))
  }
  return { url, store, client, query, application, endpoint, send, attempt }
}

/** The plans of the statements that the work runs on the store, each as text. */
export async function plansOf(
  url: string,
  store: PostgresStore,
  work: () => Promise<unknown>,
  options = "COSTS off",
): Promise<string[]> {
  const spies = [vi.spyOn(store.database, "run"), vi.spyOn(store.database, "runCalmly")]
  await work()
  const statements = spies.flatMap(({ mock }) => mock.calls)
  for (const spy of spies) spy.mockRestore()
  const client = await connect(url)
  const plans = []
  for (const [{ text }, values] of statements) {
    const { rows } = await client.query(`EXPLAIN (${options}) ${text}`, [...values])
    const lines = rows.map((row) => row["QUERY PLAN"])
    plans.push(lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"))
  }
  return plans
}
