/** Kinds of flags: name of the value, field of the API, parser. */
import { InvalidValue } from "../core/invalid-value.ts"
import { printable } from "../core/text.ts"

export interface Flag<T = unknown> {
  /** The name of its value in the help; null for a switch. */
  readonly value: string | null
  readonly about: string
  /** Its field in the API's query or body, and in error messages. */
  readonly field?: string
  readonly choices?: readonly string[]
  /** May be repeated. */
  readonly many?: boolean
  /** Throws InvalidValue. */
  read(texts: readonly string[]): T
}

export type FlagTable = { readonly [name: string]: Flag }
export type Given<F> = { readonly [N in keyof F]?: F[N] extends Flag<infer T> ? T : never }

type More = Pick<Flag, "field">

const last = (texts: readonly string[]) => texts.at(-1)!

export function on(about: string, more: More = {}): Flag<boolean> {
  return { ...more, value: null, about, read: () => true }
}

/** A switch that sets a field to false. */
export function off(about: string, more: More = {}): Flag<boolean> {
  return { ...more, value: null, about, read: () => false }
}

export function text(value: string, about: string, more: More = {}): Flag<string> {
  return { ...more, value, about, read: last }
}

/** An empty value removes it. */
export function clearable(value: string, about: string, more: More = {}): Flag<string | null> {
  return { ...more, value, about, read: (texts) => last(texts) || null }
}

export function texts(value: string, about: string, more: More = {}): Flag<readonly string[]> {
  return { ...more, value, about, many: true, read: (given) => given }
}

/** An empty value removes all. */
export function clearableTexts(
  value: string,
  about: string,
  more: More = {},
): Flag<readonly string[] | null> {
  const read = (given: readonly string[]) => (given.every((one) => one === "") ? null : given)
  return { ...more, value, about, many: true, read }
}

export function wholeNumber(value: string, about: string, more: More = {}): Flag<number> {
  return { ...more, value, about, read: (given) => toNumber(last(given)) }
}

export function clearableNumber(value: string, about: string, more: More = {}): Flag<number | null> {
  return { ...more, value, about, read: (given) => (last(given) === "" ? null : toNumber(last(given))) }
}

function toNumber(given: string): number {
  if (!/^\d{1,15}$/.test(given)) throw new InvalidValue(`must be a whole number, not "${printable(given)}"`)
  return Number(given)
}

export function choice<const T extends string>(
  choices: readonly T[],
  about: string,
  more: More = {},
): Flag<T> {
  const read = (given: readonly string[]) => {
    const found = choices.find((one) => one === last(given))
    if (found === undefined)
      throw new InvalidValue(`must be one of ${choices.join(", ")}, not "${printable(last(given))}"`)
    return found
  }
  return { ...more, value: choices.join("|"), about, choices, read }
}

/** `key=value`, repeatable. */
export function pairs(
  value: string,
  about: string,
  more: More & { readonly between?: string } = {},
): Flag<{ readonly [key: string]: string }> {
  const { between = "=", ...rest } = more
  const read = (given: readonly string[]) =>
    Object.fromEntries(
      given.map((one) => {
        const at = one.indexOf(between)
        if (at < 1) throw new InvalidValue(`must be ${value}, not "${printable(one)}"`)
        return [one.slice(0, at).trim(), one.slice(at + 1).trim()]
      }),
    )
  return { ...rest, value, about, many: true, read }
}
