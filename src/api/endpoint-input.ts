/** Endpoints as they come over the wire, in the library's words; and their headers, without showing what is secret. */
import type { EndpointInput } from "../resources/endpoints.ts"
import { eitherName } from "./query-params.ts"
import type { EndpointIn } from "./schemas/endpoint.ts"

/** Null takes a value away, or leaves the making of a secret to us. */
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

/** Svix takes the base64 alone for an HMAC secret; it is shown with its prefix from then on. */
export function prefixed(secret: string): string {
  return /^[a-zA-Z0-9+/=]{32,100}$/.test(secret) ? `whsec_${secret}` : secret
}

/** What a PUT that leaves them out sets back. */
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

/** Whoever can read an endpoint cannot read what it authenticates with. */
const SENSITIVE = /^cookie$|auth|token|secret|password|api-?key/i

export function headersOut(headers: { readonly [name: string]: string }) {
  const entries = Object.entries(headers)
  return {
    headers: Object.fromEntries(entries.filter(([name]) => !SENSITIVE.test(name))),
    sensitive: entries.filter(([name]) => SENSITIVE.test(name)).map(([name]) => name),
  }
}
