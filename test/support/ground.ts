/** The data of a test: the URLs that a Posthorn opens, and an operator's own connection to the same data. */
import { existsSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import pg from "pg"
import type { PosthornOptions } from "../../src/options.ts"

/**
 * For connections that type SQL as an operator does. Posthorn's own have none, so that a statement that does not name its schema fails.
 */
export const SEARCH_PATH = "-c search_path=posthorn,public"

export type Value = string | number | null
export type Row = Record<string, unknown>

export interface Ground {
  readonly kind: "sqlite" | "postgres"
  readonly options: Pick<PosthornOptions, "store" | "schedule">
  /** Runs SQL that an operator types, with `?` for values. Rows look the same on every store. */
  sql(text: string, ...values: Value[]): Promise<Row[]>
  /** The deliveries that a worker has taken, as it wrote them down: those being sent (1), and those that wait for their turn (0). */
  inHand(): Promise<Row[]>
  /** Whether a Posthorn has ever come so far as to make its tables. */
  hasTables(): Promise<boolean>
  close(): Promise<void>
}

export interface FileGround extends Ground {
  readonly kind: "sqlite"
  readonly file: string
}

export function sqliteGround(file: string): FileGround {
  return {
    kind: "sqlite",
    file,
    options: { store: `sqlite:${file}` },
    async sql(text, ...values) {
      const db = new DatabaseSync(file, { timeout: 5000 })
      try {
        return db.prepare(text).all(...values)
      } finally {
        db.close()
      }
    },
    inHand() {
      return this.sql("SELECT seq, started_at > 0 AS sent FROM in_flight ORDER BY seq")
    },
    async hasTables() {
      if (!existsSync(file)) return false
      return (await this.sql("SELECT 1 FROM sqlite_schema WHERE name = 'messages'")).length > 0
    },
    async close() {},
  }
}

/** Types as SQLite has them: whole numbers, 0 and 1, and times as its views write them. */
const PARSERS = new Map<number, (text: string) => unknown>([
  [pg.types.builtins.INT8, Number],
  [pg.types.builtins.BOOL, (text) => Number(text === "t")],
  [pg.types.builtins.TIMESTAMPTZ, (text) => text.replace(/\+00$/, "")],
])
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    PARSERS.get(oid) ?? pg.types.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
}

export function postgresGround(options: Ground["options"]): Ground {
  let connecting: Promise<pg.Client> | null = null
  const connect = async () => {
    const client = new pg.Client({
      connectionString: options.store,
      types,
      options: `-c timezone=UTC ${SEARCH_PATH}`,
    })
    await client.connect()
    return client
  }
  return {
    kind: "postgres",
    options,
    async sql(text, ...values) {
      connecting ??= connect()
      let number = 0
      return (
        await (
          await connecting
        ).query(
          text.replaceAll("?", () => `$${++number}`),
          values,
        )
      ).rows
    },
    inHand() {
      return this.sql(`
        SELECT seq, taken_at > 0 AS sent FROM lanes, unnest(sending, since) AS taken(seq, taken_at)
         UNION ALL
        SELECT seq, handed_token > 0 FROM webhook_deliveries_live WHERE handed_token IS NOT NULL
         ORDER BY seq`)
    },
    async hasTables() {
      return (await this.sql("SELECT to_regclass('webhook_deliveries') IS NOT NULL AS made"))[0]!.made === 1
    },
    async close() {
      await (await connecting)?.end()
    },
  }
}
