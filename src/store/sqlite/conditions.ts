/** How SQLite writes the conditions of a list. A list is one value, as JSON. */
import { type Dialect, responseClassOf } from "../conditions.ts"
import { IN_BOTH_PARTS, isRelay, LIVE } from "./schema.ts"

export const SQLITE: Dialect<string | number> = {
  placeholder: () => "?",
  toParameter: (value) => (typeof value === "object" ? JSON.stringify(value) : value),
  oneOf: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  contains: (column) => `? IN (SELECT value FROM json_each(${column}))`,
  oneOfQuery: (column, query) => `${column} IN (${query})`,
  startsWith: (column) => `instr(${column}, ?) = 1`,
  ofMessage: (id, condition) => `EXISTS (SELECT 1 FROM messages m WHERE m.id = ${id} AND ${condition})`,
  // `sum` fails where the result has more than 64 bits.
  sum: (column) => `CAST(min(total(${column}), 9007199254740991) AS INTEGER)`,
  live: `d.${LIVE} AND d.${IN_BOTH_PARTS}`,
  isRelay,
  cause: "substr(coalesce(d.error_detail, ''), 1, instr(coalesce(d.error_detail, '') || ':', ':') - 1)",
  lastResponseClass: `
    (SELECT ${responseClassOf("a")} FROM attempts a WHERE a.delivery_id = d.id ORDER BY a.seq DESC LIMIT 1)`,
}
