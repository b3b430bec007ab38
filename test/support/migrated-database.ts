/** PostgreSQL databases that have Posthorn's tables: copies of one, which takes a tenth of the CPU of the migrations. */
import { createHash } from "node:crypto"
import { MIGRATIONS } from "../../src/store/postgres/schema.ts"
import { openPostgresStore } from "../../src/store/postgres/store.ts"
import { createDatabase, freshDatabase, type NewDatabase, templateDatabase } from "./servers/postgres.ts"

/** The URL of a database as the first start of a Posthorn leaves it, dropped after the test. */
export async function migratedDatabase(): Promise<string> {
  template ??= makeTemplate()
  return freshDatabase(await template)
}

/** For several tests: the caller drops it. */
export async function createMigratedDatabase(): Promise<NewDatabase> {
  template ??= makeTemplate()
  return createDatabase(await template)
}

/** Asked for once in a process. */
let template: Promise<string> | undefined

function makeTemplate(): Promise<string> {
  const schema = createHash("sha256").update(JSON.stringify(MIGRATIONS)).digest("hex").slice(0, 16)
  return templateDatabase(`posthorn_test_schema_${schema}`, async (url) => {
    await (await openPostgresStore({ url, name: "posthorn test" })).close()
  })
}
