/** A real SMTP server on loopback that keeps the mails it got, and answers as a test says. */

import type { AddressInfo } from "node:net"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { onTestFinished } from "vitest"
import { Watchers } from "./watchers.ts"

export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  /** Headers by name in lower case, unfolded. */
  readonly headers: ReadonlyMap<string, string>
  readonly source: string
  readonly isEncrypted: boolean
  readonly user: string | null
}

type Reply = { readonly code: number; readonly text: string }

export interface SmtpAnswers {
  /** Refuses the recipient. */
  recipient?(address: string): Reply | null
  /** Refuses the mail after its data. */
  data?(mail: ReceivedMail): Reply | null
  /** Never answers the data. */
  hangs?: boolean
}

export class SmtpReceiver {
  readonly mails: ReceivedMail[] = []
  answers: SmtpAnswers = {}
  readonly #server: SMTPServer
  readonly #watchers = new Watchers()
  #connections = 0

  private constructor(options: SMTPServerOptions) {
    this.#server = new SMTPServer({
      authOptional: true,
      disableReverseLookup: true,
      logger: false,
      onConnect: (_session, done) => {
        this.#connections++
        this.#watchers.changed()
        done()
      },
      onAuth: ({ username, password }, _session, done) => {
        if (username === "posthorn" && password === SMTP_PASSWORD) done(null, { user: username })
        else done(refusal({ code: 535, text: "5.7.8 authentication failed" }))
      },
      onRcptTo: ({ address }, _session, done) => {
        const reply = this.answers.recipient?.(address) ?? null
        done(reply === null ? null : refusal(reply))
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = []
        stream.on("data", (chunk) => chunks.push(chunk))
        stream.on("end", () => {
          const { mailFrom, rcptTo } = session.envelope
          const source = Buffer.concat(chunks).toString("utf8")
          const mail: ReceivedMail = {
            from: mailFrom === false ? "" : mailFrom.address,
            to: rcptTo.map(({ address }) => address),
            headers: headersOf(source),
            source,
            isEncrypted: session.secure,
            user: (session.user as string | undefined) ?? null,
          }
          const reply = this.answers.data?.(mail) ?? null
          if (reply === null) this.mails.push(mail)
          this.#watchers.changed()
          if (!this.answers.hangs) done(reply === null ? null : refusal(reply))
        })
      },
      ...options,
    })
    // A client that hangs up, or does not trust the certificate, is part of the tests.
    this.#server.on("error", () => {})
  }

  /** Ends with the test. Without a certificate it offers no encryption. */
  static async start(options: SMTPServerOptions = {}): Promise<SmtpReceiver> {
    const isPlain = options.key === undefined
    const receiver = new SmtpReceiver({ ...(isPlain ? { hideSTARTTLS: true } : {}), ...options })
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", () => resolve()))
    onTestFinished(() => receiver.close())
    return receiver
  }

  get port(): number {
    return (this.#server.server.address() as AddressInfo).port
  }

  get connections(): number {
    return this.#connections
  }

  /** Resolves when at least so many mails have come. */
  async arrived(count: number): Promise<readonly ReceivedMail[]> {
    await this.#watchers.until(() => this.mails.length >= count)
    return this.mails
  }

  connected(count: number): Promise<void> {
    return this.#watchers.until(() => this.#connections >= count)
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
  }
}

export const SMTP_PASSWORD = "correct horse battery"

function refusal({ code, text }: Reply): Error {
  return Object.assign(new Error(text), { responseCode: code })
}

function headersOf(source: string): Map<string, string> {
  const [head = ""] = source.split("\r\n\r\n", 1)
  const lines = head.replace(/\r\n[ \t]+/g, " ").split("\r\n")
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 2)]),
  )
}
