/** Kinds of settings: how a value is parsed from text, read from the file, and shown. */

import { InvalidValue } from "../core/invalid-value.ts"
import { withoutPassword } from "../core/location.ts"
import { nearest } from "../core/nearest.ts"
import type { PolicyInput } from "../core/policy.ts"
import { PRESETS, type PresetName } from "../core/presets.ts"
import { printable } from "../core/text.ts"

export interface Kind<T> {
  /** From a flag or a variable. Throws InvalidValue. */
  parse(text: string): T
  /** From the JSON file. Throws InvalidValue. */
  read(value: unknown): T
  show(value: T): string
  /** Its flag would show secrets to every user of the machine, who can read command lines. */
  readonly isSecret?: true
  /** Replaces `{"env": "NAME"}` in the value. Throws InvalidValue. */
  resolve?(value: T, environment: Environment): T
}

export type Environment = { readonly [name: string]: string | undefined }

const quoted = (value: unknown) =>
  `"${printable(typeof value === "string" ? value : (JSON.stringify(value) ?? String(value)))}"`

export const text: Kind<string> = {
  parse: (given) => given,
  read(value) {
    if (typeof value !== "string" || value === "") throw new InvalidValue("must be a text")
    return value
  },
  show: (value) => value,
}

/** Never shown, also not in error messages. */
export const secret: Kind<string> = { ...text, show: () => "set", isSecret: true }

/** A URL that may contain a password. */
export const address: Kind<string> = { ...text, show: withoutPassword }

export function wholeNumber(least = 0, most = Number.MAX_SAFE_INTEGER): Kind<number> {
  const check = (value: number) => {
    if (value < least || value > most)
      throw new InvalidValue(`must be a whole number between ${least} and ${most}`)
    return value
  }
  return {
    parse(given) {
      if (!/^\d{1,15}$/.test(given)) throw new InvalidValue(`must be a whole number, not ${quoted(given)}`)
      return check(Number(given))
    },
    read(value) {
      if (!Number.isSafeInteger(value)) throw new InvalidValue(`must be a whole number, not ${quoted(value)}`)
      return check(value as number)
    },
    show: String,
  }
}

export const truth: Kind<boolean> = {
  parse(given) {
    if (given !== "true" && given !== "false")
      throw new InvalidValue(`must be true or false, not ${quoted(given)}`)
    return given === "true"
  },
  read(value) {
    if (typeof value !== "boolean") throw new InvalidValue("must be true or false")
    return value
  },
  show: String,
}

export function oneOf<const T extends string>(known: readonly T[]): Kind<T> {
  const read = (value: unknown): T => {
    if (known.includes(value as T)) return value as T
    const meant = typeof value === "string" ? nearest(value, known) : null
    const hint = meant === null ? "" : `; did you mean ${meant}?`
    throw new InvalidValue(`must be one of ${known.join(", ")}, not ${quoted(value)}${hint}`)
  }
  return { parse: read, read, show: (value) => value }
}

const presets = oneOf(Object.keys(PRESETS) as PresetName[])

/** The name of a preset, or a policy: JSON in text, an object in the file. The library validates its fields. */
export const policy: Kind<PresetName | PolicyInput> = {
  parse(given) {
    return given.startsWith("{") ? parseJson(given) : presets.parse(given)
  },
  read: (value) => (isObject(value) ? value : presets.read(value)),
  show: (value) => (typeof value === "string" ? value : JSON.stringify(value)),
}

function parseJson(given: string): object {
  try {
    return JSON.parse(given)
  } catch (error) {
    throw new InvalidValue(`is not JSON: ${printable((error as Error).message)}`)
  }
}

/** `true`, `false` or an object: JSON in text, a value in the file. The library validates the fields. */
export const truthOrObject: Kind<boolean | object> = {
  parse(given) {
    if (given.startsWith("{")) return parseJson(given)
    if (given === "true" || given === "false") return given === "true"
    throw new InvalidValue(`must be true or false, or an object as JSON, not ${quoted(given)}`)
  },
  read(value) {
    if (isObject(value) || typeof value === "boolean") return value
    throw new InvalidValue("must be true or false, or an object")
  },
  show: (value) => (typeof value === "boolean" ? String(value) : JSON.stringify(value)),
}

/** An object: JSON in text, a value in the file. The library validates its fields. */
export const object: Kind<object> = {
  parse: (given) => object.read(parseJson(given)),
  read(value) {
    if (isObject(value)) return value
    throw new InvalidValue("must be an object")
  },
  show: (value) => JSON.stringify(value),
}

/** An object with secrets. */
export const secretObject: Kind<object> = {
  parse(given) {
    try {
      return object.read(JSON.parse(given))
    } catch (error) {
      // The parser's message quotes the text.
      throw error instanceof SyntaxError ? new InvalidValue("is not JSON") : error
    }
  },
  read: object.read,
  show: () => "set",
  isSecret: true,
  resolve: (value, environment) => withVariables(value, environment) as object,
}

function withVariables(value: unknown, environment: Environment): unknown {
  if (Array.isArray(value)) return value.map((one) => withVariables(one, environment))
  if (!isObject(value)) return value
  const { env, ...others } = value as { readonly env?: unknown }
  if (typeof env === "string" && Object.keys(others).length === 0) return variable(env, environment)
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withVariables(one, environment)]))
}

function variable(name: string, environment: Environment): string {
  const found = environment[name]
  if (found === undefined || found === "")
    throw new InvalidValue(`names the variable ${printable(name)}, which is not set`)
  return found
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

/** Separated by commas or spaces. */
export const words: Kind<readonly string[]> = {
  parse: (given) => given.split(/[\s,]+/).filter((word) => word !== ""),
  read(value) {
    if (!Array.isArray(value) || value.some((word) => typeof word !== "string"))
      throw new InvalidValue("must be a list of texts")
    return value
  },
  show: (value) => value.join(", "),
}

/** Of web pages, as `https://HOST` or `https://HOST:PORT`. They become a part of a header. */
export const origins: Kind<readonly string[]> = {
  parse: (given) => origins.read(words.parse(given)),
  read(value) {
    for (const one of words.read(value))
      if (!URL.canParse(one) || !/^https?:$/.test(new URL(one).protocol) || new URL(one).origin !== one)
        throw new InvalidValue(`must be origins such as https://app.example.com, not ${quoted(one)}`)
    return value as readonly string[]
  },
  show: words.show,
}

export const ports: Kind<"default" | "any" | readonly number[]> = {
  parse: (given) => (given === "default" || given === "any" ? given : words.parse(given).map(Number)),
  read(value) {
    if (value === "default" || value === "any") return value
    if (!Array.isArray(value) || value.some((port) => typeof port !== "number"))
      throw new InvalidValue('must be "default", "any" or a list of port numbers')
    return value
  },
  show: (value) => (typeof value === "string" ? value : value.join(", ")),
}

export type ListenAddress = { readonly host: string; readonly port: number } | "off"

const AN_ADDRESS = "must be HOST:PORT, such as 127.0.0.1:9464, or off"

/** `HOST:PORT`, `[::1]:PORT`, or `off`. */
export const listenAddress: Kind<ListenAddress> = {
  parse(given) {
    if (given === "off") return given
    const [, bracketed, plain, digits] = /^(?:\[([\da-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i.exec(given) ?? []
    const host = bracketed ?? plain
    const port = Number(digits)
    if (host === undefined || port > 65_535) throw new InvalidValue(`${AN_ADDRESS}, not ${quoted(given)}`)
    return { host, port }
  },
  read(value) {
    if (typeof value !== "string") throw new InvalidValue(AN_ADDRESS)
    return listenAddress.parse(value)
  },
  show: (value) => (value === "off" ? value : hostAndPort(value.host, value.port)),
}

export function hostAndPort(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`
}

export const webAddress: Kind<string> = {
  parse(given) {
    const url = URL.parse(given)
    if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "")
      throw new InvalidValue(`must be an address such as https://webhooks.example.com, not ${quoted(given)}`)
    // The address is in every link, and GET /setting shows it.
    if (url.username !== "" || url.password !== "")
      throw new InvalidValue("must be an address such as https://webhooks.example.com, without a password")
    return url.href.replace(/\/+$/, "")
  },
  read: (value) => webAddress.parse(text.read(value)),
  show: (value) => value,
}
