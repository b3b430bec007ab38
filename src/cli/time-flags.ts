/** Flags for times and spans: `2h`, `7d`, `2026-03-01`, `2026-03-01T12:00:00Z`. */

import { InvalidValue } from "../core/invalid-value.ts"
import { printable } from "../core/text.ts"
import type { Flag } from "./flag.ts"

const UNITS: { readonly [unit: string]: number } = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** Null for an invalid span. A number without a unit is seconds. */
function toSeconds(given: string): number | null {
  const [, number, unit = "s"] = /^(\d{1,9})([smhdw])?$/.exec(given) ?? []
  return number === undefined ? null : Number(number) * UNITS[unit]!
}

function toTime(given: string): string | null {
  if (!/^\d{4}-\d\d-\d\d([Tt ]|$)/.test(given)) return null
  const time = new Date(given)
  return Number.isNaN(time.getTime()) ? null : time.toISOString()
}

export function span(about: string, more: Pick<Flag, "field"> = {}): Flag<number> {
  return {
    ...more,
    value: "SPAN",
    about,
    read(texts) {
      const seconds = toSeconds(texts.at(-1)!)
      if (seconds === null)
        throw new InvalidValue(`must be a span such as 90s, 15m, 2h or 7d, not "${printable(texts.at(-1)!)}"`)
      return seconds
    },
  }
}

/** A span is relative to now: `before` or `after` it. */
export function moment(
  about: string,
  direction: "before" | "after",
  more: Pick<Flag, "field"> = {},
  now = () => Date.now(),
): Flag<string> {
  return {
    ...more,
    value: "TIME",
    about,
    read(texts) {
      const given = texts.at(-1)!
      const seconds = toSeconds(given)
      const time = seconds === null ? toTime(given) : fromNow(seconds, direction, now())
      if (time === null)
        throw new InvalidValue(
          `must be a time such as 2026-03-01T12:00:00Z or a span such as 2h, not "${printable(given)}"`,
        )
      return time
    },
  }
}

export function fromNow(seconds: number, direction: "before" | "after", nowMs = Date.now()): string {
  return new Date(nowMs + (direction === "before" ? -1000 : 1000) * seconds).toISOString()
}

/** `1h 30m`: at most two units. */
export function spanText(seconds: number): string {
  const parts: string[] = []
  let left = seconds
  for (const [unit, size] of Object.entries(UNITS).reverse()) {
    if (unit === "w" || left < size) continue
    parts.push(`${Math.floor(left / size)}${unit}`)
    left %= size
  }
  return parts.length === 0 ? `${seconds}s` : parts.slice(0, 2).join(" ")
}
