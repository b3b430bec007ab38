/**
 * The PostgreSQL schema of Posthorn's tables. Statement texts name tables without a schema; only this file adds it. `search_path` cannot do
 * it: a transaction pooler does not keep it, and a user's own client has another one.
 */
import pg from "pg"
import { invalid } from "../../core/errors.ts"
import { MIGRATIONS } from "./schema.ts"
import type { Statement } from "./statement.ts"

export const DEFAULT_SCHEMA = "posthorn"
/** Lists the applied migrations; a schema with this table has Posthorn's tables. */
export const MIGRATIONS_TABLE = "posthorn_migrations"

/** Names are read from the migrations, so that a new table need not be listed here. */
const CREATED = MIGRATIONS.flatMap(({ sql }) => [
  ...sql.matchAll(/^CREATE (?:OR REPLACE )?(TABLE|VIEW|SEQUENCE|FUNCTION) (\w+)/gm),
])
const namesOf = (isFunction: boolean) =>
  CREATED.filter(([, kind]) => (kind === "FUNCTION") === isFunction).map(([, , name]) => name)
const RELATION = [MIGRATIONS_TABLE, ...namesOf(false)].join("|")
const FUNCTION = namesOf(true).join("|")

/** A table, partition or sequence after a keyword, a call of a function, a name that is cast to `regclass`. */
const REFERENCE = new RegExp(
  [
    `(?<=\\b(?:FROM|JOIN|INTO|UPDATE|USING|TABLE|PARTITION|LIKE)\\s+)(?:${RELATION})(?:_(?:aside_)?\\d+)?(?![\\w.])`,
    `(?<![\\w.])(?:${FUNCTION})(?=\\()`,
    `(?<=')(?:${RELATION})(?='::regclass)`,
  ].join("|"),
  "g",
)

export class PgSchema {
  readonly name: string
  readonly quoted: string
  readonly #bound = new WeakMap<Statement, Statement>()

  constructor(name = DEFAULT_SCHEMA) {
    this.name = name
    this.quoted = pg.escapeIdentifier(name)
  }

  bind(statement: Statement): Statement {
    let bound = this.#bound.get(statement)
    if (bound === undefined) {
      bound = statement.isMigration ? statement : { ...statement, text: this.bindText(statement.text) }
      this.#bound.set(statement, bound)
    }
    return bound
  }

  bindText(text: string): string {
    return text.replace(REFERENCE, (name) => this.of(name))
  }

  of(name: string): string {
    return `${this.quoted}.${name}`
  }

  /**
   * Key of an advisory lock, as SQL. Locks are shared by the whole database. In `public` the keys are those of older versions, which may run
   * beside this one in a rolling upgrade.
   */
  lock(what: string): string {
    const name = this.name === "public" ? `posthorn ${what}` : `posthorn ${what} in ${this.name}`
    return `hashtext(${pg.escapeLiteral(name)})`
  }
}

/** The schema of the option or the URL; null without either. */
export function givenSchema(url: string, option: string | null): string | null {
  const parameter = new URL(url).searchParams.get("schema")
  if (option !== null && parameter !== null && option !== parameter)
    throw invalid("schema", `is "${option}", and the URL of the store says "${parameter}": give one of them`)
  const name = option ?? parameter
  if (name === null || (/^[A-Za-z_][A-Za-z0-9_-]{0,62}$/.test(name) && !/^pg_/i.test(name))) return name
  throw invalid(
    "schema",
    "must be a name of at most 63 letters, digits, _ and -, not beginning with a digit, - or pg_",
  )
}
