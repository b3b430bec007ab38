/** Databases for tests: fresh ones on the run's shared server, and whole servers for tests that break theirs. */
import { randomBytes } from "node:crypto"
import { Client, escapeIdentifier } from "pg"
import { onTestFinished } from "vitest"
import { type PostgresOptions, PostgresServer } from "./postgres-server.ts"

/** The URL of a new database, which is dropped after the test: an empty one, or a copy of the one of this name. */
export async function freshDatabase(from?: string): Promise<string> {
  const { url, drop } = await createDatabase(from)
  onTestFinished(drop)
  return url
}

export interface NewDatabase {
  readonly url: string
  drop(): Promise<void>
}

/** For several tests: the caller drops it. */
export async function createDatabase(from = "template0"): Promise<NewDatabase> {
  const name = `posthorn_test_${randomBytes(8).toString("hex")}`
  administrator ??= appoint()
  const { client, strategy } = await administrator
  await client.query(`CREATE DATABASE ${name} TEMPLATE ${escapeIdentifier(from)} ${strategy}`)
  const drop = async () => void (await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
  return { url: urlOf(name), drop }
}

/**
 * The name of a database to make copies of. Whoever in the run asks for it first fills it with `build`, and the others wait. It
 * stays as long as the server, which may not be the run's own: a name says what is in it, such as the hash of a schema.
 */
export async function templateDatabase(name: string, build: (url: string) => Promise<void>): Promise<string> {
  await administer(async (client) => {
    await client.query("SELECT pg_advisory_lock(hashtext($1))", [name])
    const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = $1", [name])
    if (rowCount === 1) return
    const unfinished = `${name}_unfinished`
    await client.query(`DROP DATABASE IF EXISTS ${escapeIdentifier(unfinished)} WITH (FORCE)`)
    await client.query(`CREATE DATABASE ${escapeIdentifier(unfinished)} TEMPLATE template0`)
    await build(urlOf(unfinished))
    await client.query(`ALTER DATABASE ${escapeIdentifier(unfinished)} RENAME TO ${escapeIdentifier(name)}`)
  })
  return name
}

/** A server that is this test's own, to stop and to start as it likes. */
export async function ownPostgres(options?: PostgresOptions): Promise<PostgresServer> {
  const server = await PostgresServer.start(options)
  onTestFinished(() => server.close())
  return server
}

interface Administrator {
  readonly client: Client
  /** Half the time of the default (20 ms against 37), which PostgreSQL before 15 does not have. */
  readonly strategy: string
}

/** One connection for all tests of this process: a connection of its own costs each test 8 ms of CPU, twice. */
let administrator: Promise<Administrator> | undefined

async function appoint(): Promise<Administrator> {
  const client = new Client(process.env.POSTHORN_TEST_POSTGRES_URL)
  // The run's server ends before this process.
  client.on("error", () => {})
  await client.connect()
  const { rows } = await client.query("SELECT current_setting('server_version_num')::int AS version")
  return { client, strategy: rows[0].version >= 150_000 ? "STRATEGY file_copy" : "" }
}

async function administer(task: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client(process.env.POSTHORN_TEST_POSTGRES_URL)
  await client.connect()
  try {
    await task(client)
  } finally {
    await client.end()
  }
}

function urlOf(database: string): string {
  const url = new URL(process.env.POSTHORN_TEST_POSTGRES_URL!)
  url.pathname = database
  return url.href
}
