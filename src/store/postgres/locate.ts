/** Finds the schema of Posthorn's tables without creating anything. */
import { Clients, disconnect, TIMEOUT_MS } from "./client.ts"
import { DEFAULT_SCHEMA, givenSchema, MIGRATIONS_TABLE, PgSchema } from "./pg-schema.ts"

const FIND = `
  SELECT n.nspname AS schema
    FROM unnest($1::text[]) WITH ORDINALITY AS candidate(name, ord)
    JOIN pg_class c ON c.oid = to_regclass(candidate.name)
    JOIN pg_namespace n ON n.oid = c.relnamespace
   ORDER BY candidate.ord LIMIT 1`

export interface Located {
  readonly schema: string
  readonly hasTables: boolean
}

/** The given schema; else the one on the search path with the tables, where older versions created them; else `posthorn`. */
export async function locate(url: string, option: string | null): Promise<Located> {
  const given = givenSchema(url, option)
  const inSchema = (name: string) => new PgSchema(name).of(MIGRATIONS_TABLE)
  const candidates = given === null ? [MIGRATIONS_TABLE, inSchema(DEFAULT_SCHEMA)] : [inSchema(given)]
  const client = new Clients(url, `posthorn ${process.pid}`).single(TIMEOUT_MS)
  client.on("error", () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ schema: string }>(FIND, [candidates])
    return { schema: rows[0]?.schema ?? given ?? DEFAULT_SCHEMA, hasTables: rows.length > 0 }
  } finally {
    await disconnect(client)
  }
}

/** True also when the server cannot be reached: opening the store then says why. */
export async function isStore(url: string, schema: string | null): Promise<boolean> {
  return locate(url, schema).then(
    ({ hasTables }) => hasTables,
    () => true,
  )
}
