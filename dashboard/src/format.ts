/** Numbers, spans and dates as people read them. */

const NUMBER = new Intl.NumberFormat("en")
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 })

export function number(value: number): string {
  return Math.abs(value) < 10_000 ? NUMBER.format(value) : COMPACT.format(value)
}

export function exactNumber(value: number): string {
  return NUMBER.format(value)
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return "–"
  const value = (100 * part) / whole
  return `${value >= 99.95 && part < whole ? "99.9" : value.toFixed(value < 10 || value > 90 ? 1 : 0).replace(/\.0$/, "")} %`
}

const UNITS = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
] as const

/** The two largest units: "2 h 5 min". */
export function duration(seconds: number): string {
  if (seconds < 1) return seconds <= 0 ? "0 s" : `${Math.round(seconds * 1000)} ms`
  let rest = Math.round(seconds)
  const parts: string[] = []
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size)
    if (count > 0) parts.push(`${count} ${unit}`)
    else if (parts.length > 0) break
    rest -= count * size
    if (parts.length === 2) break
  }
  return parts.join(" ")
}

/** "3 min ago", "in 2 h". */
export function relative(at: number, now: number): string {
  const seconds = (now - at) / 1000
  if (Math.abs(seconds) < 1) return "now"
  const [span] = duration(Math.abs(seconds)).split(/ (?=\d)/)
  return seconds > 0 ? `${span} ago` : `in ${span}`
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" })

/** In the reader's zone. */
export function localTime(at: number): string {
  return DATE.format(at)
}

export function clockTime(at: number): string {
  return CLOCK.format(at)
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`
  return count < 1_048_576 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 1_048_576).toFixed(1)} MiB`
}

/** The end of an id tells it from its neighbours. */
export function shortId(id: string): string {
  return id.length <= 14 ? id : `${id.slice(0, id.indexOf("_") + 1)}…${id.slice(-7)}`
}

/** "waiting_for_agent" and "dead.gone" as words. */
export function words(name: string): string {
  return name.replace(/[_.-]+/g, " ")
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${exactNumber(count)} ${count === 1 ? one : many}`
}
