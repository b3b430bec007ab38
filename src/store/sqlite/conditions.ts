/** The WHERE of a list, from a filter in which most things are left out. */
import type { Content, Span } from "../store.ts"

export class Conditions {
  readonly values: (string | number)[] = []
  #text = "true"

  /** `?` stands for the value; without one there is no condition. */
  narrow(condition: string, value: string | number | undefined): this {
    if (value === undefined) return this
    this.values.push(value)
    return this.require(condition)
  }

  require(condition: string): this {
    this.#text += ` AND ${condition}`
    return this
  }

  span(column: string, { since, until }: Span): this {
    return this.narrow(`${column} >= ?`, since).narrow(`${column} < ?`, until)
  }

  /** `within` leads from the row to its message `m`. */
  content({ eventTypes, channel, tag }: Content, within = (condition: string) => condition): this {
    return this.narrow(within("m.event_type IN (SELECT value FROM json_each(?))"), asList(eventTypes))
      .narrow(within("? IN (SELECT value FROM json_each(m.channels))"), channel)
      .narrow(within("? IN (SELECT value FROM json_each(m.tags))"), tag)
  }

  /** The tenant of a row, through the table that knows it: a test of each row, so that the list's own order is kept. */
  tenant(orgId: string | undefined, table: "applications" | "endpoints", id: string): this {
    return this.narrow(`EXISTS (SELECT 1 FROM ${table} o WHERE o.id = ${id} AND o.org_id = ?)`, orgId)
  }

  toString(): string {
    return this.#text
  }
}

/** For rows that have only the id of their message. */
export function throughMessage(id: string): (condition: string) => string {
  return (condition) => `EXISTS (SELECT 1 FROM messages m WHERE m.id = ${id} AND ${condition})`
}

/** A list as one value, whatever its length. */
export function asList(values: readonly string[] | undefined): string | undefined {
  return values === undefined ? undefined : JSON.stringify(values)
}

/** The class of an answer, as in 200 for 204; 0 when none came. */
export function responseClassOf(attempt: string): string {
  return `coalesce(${attempt}.response_status, 0) / 100 * 100`
}
