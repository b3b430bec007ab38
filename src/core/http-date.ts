/** Reads the three date forms of RFC 9110, section 5.6.7. `Date.parse` alone would take "5" or "soon 2030". */

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ")
const DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
const LONG_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
const MONTH = `(?<month>${MONTHS.join("|")})`
const TIME = "(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)"

const FORMS = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^${DAY}, (?<day>\\d{2}) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  // RFC 850: Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^${LONG_DAY}, (?<day>\\d{2})-${MONTH}-(?<year>\\d{2}) ${TIME} GMT$`),
  // asctime: Sun Nov  6 08:49:37 1994
  new RegExp(`^${DAY} ${MONTH} (?<day>\\d{2}| \\d) ${TIME} (?<year>\\d{4})$`),
]

/** Milliseconds since 1970, NaN for anything else. `nowMs` decides the century of a year of two digits. */
export function httpDateMs(text: string, nowMs: number): number {
  for (const form of FORMS) {
    const parts = form.exec(text)?.groups
    if (parts === undefined) continue
    const month = MONTHS.indexOf(parts.month!)
    const day = Number(parts.day)
    const at = (year: number) =>
      Date.UTC(year, month, day, Number(parts.hour), Number(parts.minute), Number(parts.second))
    const year = parts.year!.length === 2 ? yearOf(Number(parts.year), at, nowMs) : Number(parts.year)
    // Date.UTC turns the 31st of February into the 3rd of March.
    const isOnCalendar = new Date(Date.UTC(year, month, day)).getUTCDate() === day
    return isOnCalendar ? at(year) : Number.NaN
  }
  return Number.NaN
}

/** RFC 9110: a time more than 50 years ahead means the latest year in the past with these two digits. */
function yearOf(twoDigits: number, at: (year: number) => number, nowMs: number): number {
  const now = new Date(nowMs)
  const century = now.getUTCFullYear() - (now.getUTCFullYear() % 100)
  const limitMs = now.setUTCFullYear(now.getUTCFullYear() + 50)
  const years = [century + 100, century, century - 100].map((start) => start + twoDigits)
  return years.find((year) => at(year) <= limitMs)!
}
