/** Authentication of requests to an endpoint, and the certificates for their connections. */
import { createPrivateKey, X509Certificate } from "node:crypto"
import { createSecureContext } from "node:tls"
import { describe, invalid } from "./errors.ts"
import { refuseUnknown, requireObject, requireText, requireUrl } from "./input.ts"

export type Auth =
  | { readonly type: "basic"; readonly username: string; readonly password: string }
  | { readonly type: "bearer"; readonly token: string }
  | OAuth2

/** OAuth 2.0 client credentials: a token is fetched from `tokenUrl`, kept until it expires, and sent as a bearer token. */
export interface OAuth2 {
  readonly type: "oauth2"
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scope?: string
  readonly audience?: string
}

/** PEM texts. */
export interface ClientTls {
  /** A client certificate and its key, for receivers that ask for one. */
  readonly cert?: string
  readonly key?: string
  /** Replaces the public certificate authorities. */
  readonly ca?: string
}

const MOST_TEXT = 8192
const MOST_PEM = 65_536

export function parseAuth(input: unknown, at = "auth"): Auth | null {
  if (input === null) return null
  requireObject(input, at)
  const auth = input as Auth
  const printable = (value: unknown, field: string) => {
    const checked = requireText(value, `${at}.${field}`, MOST_TEXT)
    if (/[^\x20-\x7e]/.test(checked)) throw invalid(`${at}.${field}`, "must be printable ASCII")
    return checked
  }
  const text = (value: unknown, field: string) => {
    if (value === "") throw invalid(`${at}.${field}`, "must not be empty")
    return printable(value, field)
  }
  switch (auth.type) {
    case "basic":
      refuseUnknown(auth, ["type", "username", "password"], at)
      if (text(auth.username, "username").includes(":"))
        throw invalid(`${at}.username`, "must not contain a colon")
      // Receivers that take an API key as the user name need an empty password.
      return { type: "basic", username: auth.username, password: printable(auth.password, "password") }
    case "bearer":
      refuseUnknown(auth, ["type", "token"], at)
      return { type: "bearer", token: text(auth.token, "token") }
    case "oauth2":
      refuseUnknown(auth, ["type", "tokenUrl", "clientId", "clientSecret", "scope", "audience"], at)
      return {
        type: "oauth2",
        tokenUrl: requireUrl(auth.tokenUrl, ["http:", "https:"], `${at}.tokenUrl`),
        clientId: text(auth.clientId, "clientId"),
        clientSecret: text(auth.clientSecret, "clientSecret"),
        ...(auth.scope === undefined ? {} : { scope: text(auth.scope, "scope") }),
        ...(auth.audience === undefined ? {} : { audience: text(auth.audience, "audience") }),
      }
    default:
      throw invalid(`${at}.type`, "must be basic, bearer or oauth2")
  }
}

export function parseClientTls(input: unknown, at = "tls"): ClientTls | null {
  if (input === null) return null
  requireObject(input, at)
  const { cert, key, ca } = input as ClientTls
  refuseUnknown(input as object, ["cert", "key", "ca"], at)
  if ((cert === undefined) !== (key === undefined)) throw invalid(`${at}.key`, "and cert belong together")
  const certificate = cert === undefined ? null : parse(`${at}.cert`, cert, () => new X509Certificate(cert))
  const privateKey = key === undefined ? null : parse(`${at}.key`, key, () => createPrivateKey(key))
  if (certificate !== null && privateKey !== null && !certificate.checkPrivateKey(privateKey)) {
    throw invalid(`${at}.key`, "does not belong to the certificate")
  }
  if (ca !== undefined) requireAuthorities(ca, `${at}.ca`)
  const tls = { ...(cert === undefined ? {} : { cert, key: key! }), ...(ca === undefined ? {} : { ca }) }
  try {
    createSecureContext(tls)
  } catch (error) {
    throw invalid(at, `cannot be used for a connection: ${describe(error)}`)
  }
  return tls
}

/** Certificate authorities as PEM. */
export function requireAuthorities(pem: unknown, field: string): string {
  parse(field, pem, () => readAuthorities(pem as string))
  return pem as string
}

/** Parses each certificate: OpenSSL stops silently at the first that it cannot parse and ignores those behind it. */
function readAuthorities(pem: string): X509Certificate[] {
  const [before = "", ...blocks] = pem.split(/(?=-----BEGIN )/)
  const certificates = before.startsWith("-----BEGIN ") ? [before, ...blocks] : blocks
  if (certificates.length === 0) throw new Error("no certificate")
  return certificates.map((block) => new X509Certificate(block))
}

function parse<T>(field: string, pem: unknown, read: () => T): T {
  requireText(pem, field, MOST_PEM)
  try {
    return read()
  } catch {
    throw invalid(field, "is not in PEM form")
  }
}

export function authorization(auth: Exclude<Auth, OAuth2>): string {
  if (auth.type === "bearer") return `Bearer ${auth.token}`
  return `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString("base64")}`
}
