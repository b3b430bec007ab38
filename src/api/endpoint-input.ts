/** Translates endpoints from the API's fields to the library's; shows headers without their secrets. */
import type { EndpointInput } from "../resources/endpoints.ts"
import { eitherName } from "./query-params.ts"
import type { EndpointIn } from "./schemas/endpoint.ts"

/** Null removes a value; a null secret is generated. */
export function endpointInput(body: Partial<EndpointIn>): Partial<EndpointInput> {
  const { throttleRate, rateLimit, eventTypes, filterTypes, version, secret, headers, ...rest } = body
  const rate = eitherName(throttleRate, rateLimit)
  const types = eitherName(eventTypes, filterTypes)
  return {
    ...(rest as Partial<EndpointInput>),
    ...(rate === undefined ? {} : { rateLimit: rate }),
    ...(types === undefined ? {} : { eventTypes: types }),
    ...(version === undefined || version === null ? {} : { apiVersion: version }),
    ...(secret === undefined || secret === null ? {} : { secret: prefixed(secret) }),
    ...(headers === undefined || headers === null ? {} : { headers }),
  }
}

/** Svix accepts an HMAC secret without its prefix. */
export function prefixed(secret: string): string {
  return /^[a-zA-Z0-9+/=]{32,100}$/.test(secret) ? `whsec_${secret}` : secret
}

/** PUT resets the fields that it leaves out. */
export const DEFAULTS = {
  description: "",
  uid: null,
  eventTypes: null,
  channels: null,
  metadata: {},
  rateLimit: null,
  disabled: false,
  apiVersion: 1,
} as const

/** Headers that may contain credentials: their values are not shown. */
export const SENSITIVE = /^cookie$|auth|token|secret|password|api-?key/i

export function headersOut(headers: { readonly [name: string]: string }) {
  const entries = Object.entries(headers)
  return {
    headers: Object.fromEntries(entries.filter(([name]) => !SENSITIVE.test(name))),
    sensitive: entries.filter(([name]) => SENSITIVE.test(name)).map(([name]) => name),
  }
}
