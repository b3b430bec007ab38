/** JSON with numbers that JavaScript cannot hold: the ids of many providers are integers above 2⁵³. */

/** Numbers without one of these are exact: at most 15 digits and no exponent. Parsing with a callback takes 10 times as long. */
const MAYBE_INEXACT = /[\d.]{16}|\d[eE]/

const { rawJSON } = JSON as JSON & { rawJSON(text: string): object }

/** As `JSON.parse`, but a number that a double cannot hold becomes an object that `JSON.stringify` writes as it was. */
export function parseExactly(text: string): unknown {
  return MAYBE_INEXACT.test(text) ? JSON.parse(text, keepInexact as JsonReviver) : JSON.parse(text)
}

type JsonReviver = (key: string, value: unknown) => unknown

function keepInexact(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  return typeof value !== "number" || source === undefined || isExact(value, source) ? value : rawJSON(source)
}

/** A double holds 15 decimal digits, within its range; of more digits only those that it prints again. */
function isExact(value: number, source: string): boolean {
  if (String(value) === source) return true
  const digits = source
    .replace(/[eE].*/, "")
    .replace(/\D/g, "")
    .replace(/^0+/, "")
  const isInRange = Number.isFinite(value) && (value !== 0 || digits === "")
  return isInRange && digits.length <= 15
}
