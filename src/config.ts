/** Loads the settings: each from a flag, the environment, the file, or its default. */

import { type ConfigFile, readConfigFile } from "./config/file.ts"
import { flagOf, NAMES, type SettingName, type Settings, settingOf, variablesOf } from "./config/table.ts"
import { PosthornError } from "./core/errors.ts"
import { InvalidValue } from "./core/invalid-value.ts"
import type { PricesInput } from "./core/parse-prices.ts"
import type { PosthornOptions } from "./options.ts"

export interface Config {
  readonly values: Settings
  /** `--port`, `POSTHORN_PORT`, `port in posthorn.json`; null for a default. */
  readonly sources: { readonly [N in SettingName]: string | null }
}

export interface Sources {
  readonly flags: { readonly [flag: string]: unknown }
  readonly environment: { readonly [name: string]: string | undefined }
}

export const SETTING_SOURCES = ["default", "file", "environment", "flag"] as const

/** As users may see it: without secrets. */
export interface SettingInForce {
  readonly name: SettingName
  /** Null when it has none. */
  readonly value: string | null
  readonly source: (typeof SETTING_SOURCES)[number]
  readonly description: string
}

interface Found {
  readonly value: unknown
  readonly source: string | null
}

export function loadConfig({ flags, environment }: Sources): Config {
  const named = flags.config ?? environment.POSTHORN_CONFIG
  const file = readConfigFile(typeof named === "string" && named !== "" ? named : null)
  const found = NAMES.map((name) => [name, find(name, flags, environment, file)] as const)
  return {
    values: Object.fromEntries(found.map(([name, { value }]) => [name, value])) as Settings,
    sources: Object.fromEntries(found.map(([name, { source }]) => [name, source])) as Config["sources"],
  }
}

function find(
  name: SettingName,
  flags: Sources["flags"],
  environment: Sources["environment"],
  file: ConfigFile | null,
): Found {
  const { kind, fallback, off } = settingOf(name)
  const resolved = (value: unknown) => kind.resolve?.(value, environment) ?? value
  const flag = flagOf(name)
  const given = flag === null ? undefined : flags[flag]
  if (off !== undefined && given === true) return { value: false, source: `--${flag}` }
  if (typeof given === "string") return taken(`--${flag}`, () => resolved(kind.parse(given)))
  for (const variable of variablesOf(name)) {
    const text = environment[variable]?.trim()
    if (text !== undefined && text !== "") return taken(variable, () => resolved(kind.parse(text)))
  }
  const written = file?.values.get(name)
  if (file === null || written === undefined || written === null) return { value: fallback, source: null }
  return taken(`${name} in ${file.path}`, () => resolved(kind.read(written)))
}

function taken(source: string, read: () => unknown): Found {
  try {
    return { value: read(), source }
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error
    throw new PosthornError("invalid_input", `${source} ${error.message}`)
  }
}

export function settingsInForce({ values, sources }: Config): SettingInForce[] {
  return NAMES.map((name) => {
    const [value, { kind, about }] = [values[name], settingOf(name)]
    const shown = value === null ? null : kind.show(value)
    return { name, value: shown, source: sourceKind(sources[name]), description: about }
  })
}

function sourceKind(source: string | null): SettingInForce["source"] {
  if (source === null) return "default"
  if (source.startsWith("--")) return "flag"
  return source.includes(" ") ? "file" : "environment"
}

/** The library's options. Settings without a value are left out: the library has its own defaults. */
export function libraryOptions({ values }: Config): PosthornOptions {
  const given = <K extends string, T>(key: K, value: T | null) =>
    (value === null ? {} : { [key]: value }) as { [key in K]?: T }
  return {
    store: values.store,
    ...given("schedule", values.schedule),
    ...given("schema", values.schema),
    ...given("encryptionKey", values.encryptionKey),
    retry: values.retry,
    deliver: values.deliver,
    pollIntervalMs: values.pollIntervalMs,
    ...given("maxPerPoll", values.maxPerPoll),
    maintenanceIntervalMs: values.maintenanceIntervalMs,
    maxInFlight: values.maxInFlight,
    concurrency: values.concurrency,
    ownOutage: values.ownOutage,
    ...given("cost", values.cost as PricesInput | null),
    maxPayloadBytes: values.maxPayloadBytes,
    closeTimeoutMs: values.closeTimeoutMs,
    ...given("alerts", values.alerts),
    sendTraceparent: values.sendTraceparent,
    logger: values.logLevel,
    egress: {
      ...given("allow", values["egress.allow"]),
      ...given("ports", values["egress.ports"]),
      ...given("http", values["egress.http"]),
      ...given("proxy", values["egress.proxy"]),
      ...given("dns", values["egress.dns"]),
    },
  }
}
