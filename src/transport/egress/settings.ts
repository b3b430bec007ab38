/** The operator's egress settings, from options or from the environment. */
import { networkInterfaces } from "node:os"
import { invalid } from "../../core/errors.ts"
import { refuseUnknown, requireObject } from "../../core/input.ts"
import { parseCidr } from "./addresses.ts"
import type { PortRules, TargetRules } from "./targets.ts"

export interface EgressInput {
  /** Private ranges to allow, as CIDRs: `["127.0.0.0/8"]`. Else POSTHORN_EGRESS_ALLOW, separated by commas. */
  allow?: readonly string[]
  /** `"default"` refuses the ports of well-known services, `"any"` none, a list all that are not in it. Else POSTHORN_EGRESS_PORTS. */
  ports?: "default" | "any" | readonly number[]
  /** Whether `http://` is allowed beside `https://`. True; else POSTHORN_EGRESS_HTTP. */
  http?: boolean
  /** `http://host:port` of a proxy that every request goes through. Else POSTHORN_EGRESS_PROXY. Other proxy variables are ignored. */
  proxy?: string | null
  /** Name servers as `address` or `address:port`; by default the system's. Else POSTHORN_EGRESS_DNS. */
  dns?: readonly string[]
}

export interface EgressSettings {
  readonly rules: TargetRules
  readonly proxy: URL | null
  readonly dns: readonly string[] | null
}

export type Environment = { readonly [name: string]: string | undefined }

export function parseEgress(input: EgressInput = {}, environment: Environment = {}): EgressSettings {
  requireObject(input, "egress")
  refuseUnknown(input, ["allow", "ports", "http", "proxy", "dns"], "egress")
  const allow =
    chosen(input.allow, "egress.allow", environment, "POSTHORN_EGRESS_ALLOW", words) ?? noValue([])
  const ports =
    chosen(input.ports, "egress.ports", environment, "POSTHORN_EGRESS_PORTS", portsFromText) ??
    noValue("default" as const)
  const http =
    chosen(input.http, "egress.http", environment, "POSTHORN_EGRESS_HTTP", flagFromText) ?? noValue(true)
  const proxy = chosen(
    input.proxy ?? undefined,
    "egress.proxy",
    environment,
    "POSTHORN_EGRESS_PROXY",
    (text) => text,
  )
  const dns = chosen(input.dns, "egress.dns", environment, "POSTHORN_EGRESS_DNS", words)
  if (typeof http.value !== "boolean") throw invalid(http.field, "must be true or false")
  return {
    rules: {
      http: http.value,
      ports: parsePorts(ports.value, ports.field),
      addresses: { allow: list(allow).map((text) => parseCidr(text, allow.field)), own: ownAddresses() },
    },
    proxy: proxy === null ? null : parseProxy(proxy.value, proxy.field),
    dns: dns === null ? null : list(dns),
  }
}

interface Chosen<T> {
  readonly value: T
  readonly field: string
}

function noValue<T>(value: T): Chosen<T> {
  return { value, field: "" }
}

/** An option wins over the environment. An error names the one that was used. */
function chosen<T>(
  given: T | undefined,
  field: string,
  environment: Environment,
  variable: string,
  parse: (text: string) => T,
): Chosen<T> | null {
  if (given !== undefined) return { value: given, field }
  const text = environment[variable]?.trim()
  return text === undefined || text === "" ? null : { value: parse(text), field: variable }
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "")
}

function list({ value, field }: Chosen<readonly string[]>): readonly string[] {
  if (!Array.isArray(value) || value.some((entry) => typeof entry !== "string"))
    throw invalid(field, "must be a list of texts")
  return value
}

function flagFromText(text: string): boolean {
  if (text !== "true" && text !== "false") throw invalid("POSTHORN_EGRESS_HTTP", "must be true or false")
  return text === "true"
}

function portsFromText(text: string): PortRules {
  return text === "default" || text === "any" ? text : words(text).map(Number)
}

function parsePorts(ports: PortRules, field: string): PortRules {
  if (ports === "default" || ports === "any") return ports
  const good =
    Array.isArray(ports) &&
    ports.length > 0 &&
    ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536)
  if (!good) throw invalid(field, 'must be "default", "any" or a list of port numbers')
  return ports
}

function parseProxy(text: string, field: string): URL {
  const url = URL.parse(text)
  if (url === null || url.protocol !== "http:" || url.hostname === "")
    throw invalid(field, "must be http://host:port of a proxy that understands CONNECT")
  try {
    decodeURIComponent(url.username + url.password)
  } catch {
    throw invalid(field, "must have a user name and password that are percent-encoded as UTF-8")
  }
  return url
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) =>
    (addresses ?? []).map(({ address }) => address),
  )
}
