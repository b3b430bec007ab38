/** A notification in the form in which it leaves: the body of a request, or a mail. */
import type { Bytes } from "../../core/bytes.ts"

export type Outgoing = OutgoingRequest | OutgoingMail

export interface OutgoingRequest {
  readonly via: "http"
  readonly url: string
  /** JSON; null: the body of the message as it is, with its signature. */
  readonly body: Bytes | null
  /** Texts that are replaced wherever the receiver or an error repeats them. */
  readonly secrets: readonly string[]
}

export interface OutgoingMail {
  readonly via: "smtp"
  readonly server: SmtpServer
  readonly mail: Mail
  readonly secrets: readonly string[]
}

export interface SmtpServer {
  readonly host: string
  readonly port: number
  readonly security: "tls" | "starttls" | "none"
  readonly login: { readonly user: string; readonly password: string } | null
  /** PEM; null: the public certificate authorities. */
  readonly ca: string | null
}

export interface Mail {
  readonly from: string
  readonly to: readonly string[]
  readonly subject: string
  readonly text: string
  readonly html: string
  /** With angle brackets. */
  readonly messageId: string
  /** The message that all mails of a thread refer to. */
  readonly thread: string
  readonly isUrgent: boolean
}
