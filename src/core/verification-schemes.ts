/** The schemes of providers by name, and the settings that a source is given for them. */
import type { Place } from "./received-request.ts"
import type { HmacScheme, Scheme, TokenScheme } from "./verification.ts"

const HEX = {
  kind: "hmac",
  format: "plain",
  prefix: "",
  algorithm: "sha256",
  encoding: "hex",
  content: "{body}",
  idHeaders: [],
  timestampHeaders: [],
  toleranceSeconds: 300,
  secretEncoding: "utf8",
} as const satisfies Partial<HmacScheme>

const STANDARD = {
  ...HEX,
  format: "versions",
  prefix: "v1",
  encoding: "base64",
  content: "{id}.{timestamp}.{body}",
  secretEncoding: "base64",
} as const satisfies Partial<HmacScheme>

const TOKEN = { kind: "token", header: "authorization", prefix: "", encoding: "plain" } as const

interface Ready {
  readonly scheme: Scheme
  /** Where the provider's id of the delivery is, the same in a repetition. The first that the request has counts. */
  readonly deliveryId: readonly Place[]
}

const READY = {
  "standard-webhooks": {
    scheme: {
      ...STANDARD,
      signatureHeaders: ["webhook-signature", "svix-signature"],
      idHeaders: ["webhook-id", "svix-id"],
      timestampHeaders: ["webhook-timestamp", "svix-timestamp"],
    },
    deliveryId: [{ header: "webhook-id" }, { header: "svix-id" }],
  },
  svix: {
    scheme: {
      ...STANDARD,
      signatureHeaders: ["svix-signature"],
      idHeaders: ["svix-id"],
      timestampHeaders: ["svix-timestamp"],
    },
    deliveryId: [{ header: "svix-id" }],
  },
  stripe: {
    scheme: {
      ...HEX,
      signatureHeaders: ["stripe-signature"],
      format: "pairs",
      prefix: "v1",
      content: "{timestamp}.{body}",
    },
    deliveryId: [{ pointer: "/id" }],
  },
  github: {
    scheme: { ...HEX, signatureHeaders: ["x-hub-signature-256"], prefix: "sha256=" },
    deliveryId: [{ header: "x-github-delivery" }],
  },
  shopify: {
    scheme: { ...HEX, signatureHeaders: ["x-shopify-hmac-sha256"], encoding: "base64" },
    deliveryId: [{ header: "x-shopify-webhook-id" }],
  },
  slack: {
    scheme: {
      ...HEX,
      signatureHeaders: ["x-slack-signature"],
      prefix: "v0=",
      content: "v0:{timestamp}:{body}",
      timestampHeaders: ["x-slack-request-timestamp"],
    },
    deliveryId: [{ pointer: "/event_id" }],
  },
  // Not X-Gitlab-Event-UUID: webhooks that a webhook caused share it, and all but the first would be lost.
  gitlab: { scheme: { ...TOKEN, header: "x-gitlab-token" }, deliveryId: [{ header: "idempotency-key" }] },
  basic: { scheme: { ...TOKEN, prefix: "Basic ", encoding: "base64" }, deliveryId: [] },
  bearer: { scheme: { ...TOKEN, prefix: "Bearer " }, deliveryId: [] },
  none: { scheme: { kind: "none" }, deliveryId: [] },
} as const satisfies { readonly [name: string]: Ready }

export type ReadyScheme = keyof typeof READY
export const READY_SCHEMES = Object.keys(READY) as ReadyScheme[]
/** `hmac` and `token` take the fields that describe them. */
export const SCHEME_NAMES = [...READY_SCHEMES, "hmac", "token"] as const
export type SchemeName = (typeof SCHEME_NAMES)[number]

/** How the requests of a source are verified, as it is stored and shown. */
export type Verification =
  | { readonly scheme: ReadyScheme; readonly toleranceSeconds?: number }
  | ({ readonly scheme: "hmac" } & HmacFields)
  | ({ readonly scheme: "token" } & Pick<TokenScheme, "header" | "prefix">)

export interface HmacFields
  extends Pick<HmacScheme, "format" | "prefix" | "algorithm" | "encoding" | "content" | "secretEncoding"> {
  readonly header: string
  readonly idHeader?: string
  readonly timestampHeader?: string
  readonly toleranceSeconds: number
}

/** The fields of `hmac` that have a default. */
export const HMAC_DEFAULTS = {
  format: HEX.format,
  prefix: HEX.prefix,
  algorithm: HEX.algorithm,
  encoding: HEX.encoding,
  content: HEX.content,
  secretEncoding: HEX.secretEncoding,
  toleranceSeconds: HEX.toleranceSeconds,
} as const satisfies Partial<HmacFields>

export function schemeOf(verification: Verification): Scheme {
  switch (verification.scheme) {
    case "hmac": {
      const { scheme: _, header, idHeader, timestampHeader, ...fields } = verification
      return {
        kind: "hmac",
        ...fields,
        signatureHeaders: [header],
        idHeaders: idHeader === undefined ? [] : [idHeader],
        timestampHeaders: timestampHeader === undefined ? [] : [timestampHeader],
      }
    }
    case "token":
      return { ...TOKEN, header: verification.header, prefix: verification.prefix }
    default: {
      const { scheme } = READY[verification.scheme]
      const { toleranceSeconds } = verification
      return toleranceSeconds === undefined || scheme.kind !== "hmac"
        ? scheme
        : { ...scheme, toleranceSeconds }
    }
  }
}

/** Where the provider's id of a delivery is by default. */
export function deliveryIdPlaces({ scheme }: Verification): readonly Place[] {
  return scheme === "hmac" || scheme === "token" ? [] : READY[scheme].deliveryId
}

/** The header that carries the secret itself, which must not be stored with a message. */
export function secretHeaderOf(scheme: Scheme): string | null {
  return scheme.kind === "token" ? scheme.header : null
}
