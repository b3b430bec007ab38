/** The configuration file: JSON with the settings by name; those of egress are in a nested object. */
import { existsSync, readFileSync } from "node:fs"
import { describe, PosthornError } from "../core/errors.ts"
import { nearest } from "../core/nearest.ts"
import { NAMES } from "./table.ts"

export interface ConfigFile {
  readonly path: string
  readonly values: ReadonlyMap<string, unknown>
}

const DEFAULT_PATH = "posthorn.json"
const GROUPS = new Set(NAMES.filter((name) => name.includes(".")).map((name) => name.split(".")[0]!))

/** The given file, or `posthorn.json` in the current folder if it exists. */
export function readConfigFile(named: string | null): ConfigFile | null {
  if (named === null && !existsSync(DEFAULT_PATH)) return null
  const path = named ?? DEFAULT_PATH
  const values = new Map<string, unknown>()
  for (const [key, value] of Object.entries(parseFile(path))) {
    if (GROUPS.has(key) && isObject(value))
      for (const [inner, one] of Object.entries(value)) values.set(`${key}.${inner}`, one)
    else values.set(key, value)
  }
  for (const key of values.keys()) refuseUnknown(key, path)
  return { path, values }
}

function parseFile(path: string): object {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (cause) {
    throw unusable(`the configuration ${path} cannot be read: ${describe(cause)}`)
  }
  try {
    const content = JSON.parse(text)
    if (isObject(content)) return content
  } catch (cause) {
    throw unusable(`the configuration ${path} is not JSON: ${describe(cause).replaceAll("\n", " ")}`)
  }
  throw unusable(`the configuration ${path} must be an object such as {"port": 8071}`)
}

function refuseUnknown(key: string, path: string): void {
  if ((NAMES as string[]).includes(key)) return
  const meant = nearest(key, NAMES)
  const hint = meant === null ? `known are ${NAMES.join(", ")}` : `did you mean ${meant}?`
  throw unusable(`unknown setting ${key} in ${path}; ${hint}`)
}

function unusable(sentence: string): PosthornError {
  return new PosthornError("invalid_input", sentence)
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
