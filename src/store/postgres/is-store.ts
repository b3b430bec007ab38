/** Whether a database is a store already: asked without making it one. */
import { Clients, disconnect, TIMEOUT_MS } from "./client.ts"

const TABLES = "SELECT to_regclass('posthorn_migrations') IS NOT NULL AS found"

/** True also when it cannot be asked: whoever opens it then says why. */
export async function isStore(url: string): Promise<boolean> {
  try {
    const client = new Clients(url, `posthorn ${process.pid}`).single(TIMEOUT_MS)
    client.on("error", () => {})
    await client.connect()
    try {
      const { rows } = await client.query<{ found: boolean }>(TABLES)
      return rows[0]!.found
    } finally {
      await disconnect(client)
    }
  } catch {
    return true
  }
}
