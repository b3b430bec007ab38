/** The WHERE of a list, from a filter in which most things are left out. */
import type { Statement } from "./statement.ts"

export class Conditions {
  readonly values: unknown[] = []
  #text = "true"

  /** `?` stands for the value; without one there is no condition. */
  narrow(condition: string, value: string | number | undefined): void {
    if (value !== undefined) this.require(condition.replace("?", this.parameter(value)))
  }

  require(condition: string): void {
    this.#text += ` AND ${condition}`
  }

  /** The name of a parameter with this value. */
  parameter(value: string | number): string {
    this.values.push(value)
    return `$${this.values.length}`
  }

  toString(): string {
    return this.#text
  }
}

/**
 * Without a name, it is planned for the values at hand: only the partitions that can have the status are looked at. Prepared once for
 * all values, the endpoint with a million rows would be read like the one with ten: all of them sorted for each page.
 */
export function unprepared(text: string): Statement {
  return { name: "", text }
}
