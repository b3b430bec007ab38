/** Sends a mail to the operator's SMTP server with nodemailer, and turns the server's reply into a result. */
import { bytesOfText } from "../../core/bytes.ts"
import { describe } from "../../core/errors.ts"
import type { FailureCause } from "../../core/failure-causes.ts"
import { causeOf, excerpt, INTERRUPTED, withoutResponse } from "../result.ts"
import type { TransportResult } from "../transport.ts"
import type { Mail, SmtpServer } from "./outgoing.ts"

export interface SmtpLimits {
  readonly connectTimeoutMs: number
  readonly timeoutMs: number
  /** Its reason is `INTERRUPTED`, or the deadline's error. */
  readonly signal: AbortSignal
}

/** The fields of nodemailer's errors. */
interface SmtpError extends Error {
  readonly code?: string
  readonly originalCode?: string
  readonly response?: string
  readonly responseCode?: number
}

export async function sendMail(server: SmtpServer, mail: Mail, limits: SmtpLimits): Promise<TransportResult> {
  const { signal } = limits
  // Loaded at the first mail: most processes send none.
  const { createTransport } = await import("nodemailer")
  try {
    const { response, rejectedErrors = [] } = await createTransport(connectionOf(server, limits)).sendMail({
      ...messageOf(mail),
      signal,
    })
    // A recipient that the server refused for now gets the mail later. The others get it twice, with the same id.
    const later = rejectedErrors.find(({ responseCode = 0 }) => responseCode < 500)
    if (later !== undefined) return replied("transient", later.response ?? later.message)
    const refused = rejectedErrors.map((error) => error.response ?? error.message)
    return replied("success", [response, ...refused.map((one) => `refused: ${one}`)].join("; "))
  } catch (error) {
    return failureOf((signal.aborted ? signal.reason : error) as SmtpError)
  }
}

/** Dials the configured host alone: no proxy, no lookup of mail exchangers, no OAuth tokens. */
function connectionOf({ host, port, security, login, ca }: SmtpServer, limits: SmtpLimits) {
  const { connectTimeoutMs, timeoutMs } = limits
  return {
    host,
    port,
    secure: security === "tls",
    requireTLS: security === "starttls",
    ignoreTLS: security === "none",
    ...(login === null ? {} : { auth: { user: login.user, pass: login.password } }),
    tls: { rejectUnauthorized: true, ...(ca === null ? {} : { ca }) },
    connectionTimeout: connectTimeoutMs,
    dnsTimeout: connectTimeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  }
}

function messageOf({ from, to, subject, text, html, messageId, thread, isUrgent }: Mail) {
  return {
    from: { name: "Posthorn", address: from },
    to: to.map((address) => ({ name: "", address })),
    subject,
    text,
    html,
    messageId,
    inReplyTo: thread,
    references: thread,
    // RFC 3834: keeps out-of-office replies away.
    headers: { "Auto-Submitted": "auto-generated" },
    ...(isUrgent ? { priority: "high" as const } : {}),
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

/** RFC 5321: a reply of 4yz asks for another try later, 5yz refuses for good. */
function failureOf(error: SmtpError): TransportResult {
  const { code, response, responseCode } = error
  if ((error as Error) === INTERRUPTED) return withoutResponse({ kind: "interrupted" }, describe(error))
  if (code !== "ETLS" && response !== undefined && responseCode !== undefined)
    return replied(responseCode < 500 ? "transient" : "permanent", response)
  return withoutResponse({ kind: "failure", cause: failureCauseOf(error) }, excerpt(describeBytes(error)))
}

const CAUSES: { readonly [code: string]: FailureCause } = {
  EDNS: "dns_error",
  ETLS: "tls_error",
  ETIMEDOUT: "timeout",
  EAUTH: "auth_error",
  ECONNECTION: "connection_reset",
  EPROTOCOL: "invalid_response",
}

function failureCauseOf(error: SmtpError): FailureCause {
  // nodemailer replaces the system's code with its own.
  const { code = "", originalCode = code } = error
  const cause = causeOf(Object.assign(new Error(), { code: originalCode }))
  if (cause !== "network_error") return cause
  return CAUSES[code] ?? causeOf(error)
}

function replied(result: "success" | "permanent" | "transient", reply: string): TransportResult {
  const detail = excerpt(Buffer.from(reply))
  return {
    outcome: { kind: "ack", result, detail },
    responseStatus: null,
    responseBody: bytesOfText(detail),
    responseTruncated: false,
    detail,
  }
}

const describeBytes = (error: Error) => Buffer.from(describe(error))
