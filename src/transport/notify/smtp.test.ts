/** Mail against a real SMTP server: encryption, login, refusals, hanging servers, and the results that the engine sees. */
import { expect, onTestFinished, test } from "vitest"
import { Authority } from "../../../test/egress/certificates.ts"
import { TestClock } from "../../../test/support/clock.ts"
import { loopbackGuard } from "../../../test/support/harness.ts"
import { SMTP_PASSWORD, SmtpReceiver } from "../../../test/support/smtp.ts"
import { systemClock } from "../../core/clock.ts"
import { HttpTransport } from "../http.ts"
import type { OutboundRequest } from "../transport.ts"
import { NotifyTransport } from "./notify.ts"
import type { Mail, SmtpServer } from "./outgoing.ts"

const MAIL: Mail = {
  from: "posthorn@example.com",
  to: ["ops@example.com", "oncall@example.com"],
  subject: "Größe\r\nBcc: thief@example.com",
  text: "All is well.\r\n.\r\nMAIL FROM:<thief@example.com>",
  html: "<p>All is well.</p>",
  messageId: "<msg_1@example.com>",
  thread: "<posthorn-1@example.com>",
  isUrgent: true,
}
const REQUEST: OutboundRequest = {
  endpointId: "ep_1",
  version: 1,
  url: "notify:post",
  headers: {},
  body: "",
  timeoutMs: 20_000,
  connectTimeoutMs: 10_000,
  tls: {},
}

function open(server: Partial<SmtpServer> & { readonly port: number }, mail = MAIL, clock = systemClock()) {
  const guard = loopbackGuard(clock)
  const http = new HttpTransport(clock, guard)
  const plain = { host: "127.0.0.1", security: "none", login: null, ca: null } as const
  const secrets = server.login == null ? [] : [server.login.password]
  const transport = new NotifyTransport(clock, http, async () => ({
    via: "smtp",
    server: { ...plain, ...server },
    mail,
    secrets,
  }))
  onTestFinished(async () => {
    await transport.close()
    await http.close()
    guard.close()
  })
  return transport
}

const login = (password: string) => ({ user: "posthorn", password })
const authority = () => {
  const made = new Authority()
  return { ca: made.cert, made, good: made.certificate("smtp", { names: "IP:127.0.0.1" }) }
}

test("a mail arrives as text and HTML, with safe headers, and no line of it becomes a command", async () => {
  const smtp = await SmtpReceiver.start()
  const { outcome } = await open({ port: smtp.port }).send(REQUEST)
  expect(outcome).toMatchObject({ kind: "ack", result: "success", detail: expect.stringMatching(/^250 /) })
  const [mail] = smtp.mails
  expect(mail).toMatchObject({ from: MAIL.from, to: MAIL.to, isEncrypted: false, user: null })
  expect(Object.fromEntries(mail!.headers)).toMatchObject({
    from: "Posthorn <posthorn@example.com>",
    "message-id": "<msg_1@example.com>",
    "in-reply-to": "<posthorn-1@example.com>",
    references: "<posthorn-1@example.com>",
    "auto-submitted": "auto-generated",
    importance: "High",
  })
  expect(mail!.headers.has("bcc")).toBe(false)
  expect(mail!.headers.get("content-type")).toMatch(/^multipart\/alternative/)
  expect(mail!.source).toContain("MAIL FROM:<thief@example.com>")
  expect(smtp.mails).toHaveLength(1)
})

test.each([
  "tls",
  "starttls",
] as const)("%s: the certificate is verified, then the password is sent", async (security) => {
  const { ca, made, good } = authority()
  const secure = security === "tls"
  const smtp = await SmtpReceiver.start({ secure, ...good })
  const server = { port: smtp.port, security, ca, login: login(SMTP_PASSWORD) }
  expect((await open(server).send(REQUEST)).outcome).toMatchObject({ kind: "ack", result: "success" })
  expect(smtp.mails[0]).toMatchObject({ isEncrypted: true, user: "posthorn" })
  // An authority that nobody knows, and the certificate of another host.
  const unknown = await open({ ...server, ca: null }).send(REQUEST)
  expect(unknown.outcome).toEqual({ kind: "failure", cause: "tls_error" })
  const other = await SmtpReceiver.start({
    secure,
    ...made.certificate("other", { names: "DNS:other.example" }),
  })
  const wrong = await open({ ...server, port: other.port }).send(REQUEST)
  expect(wrong.outcome).toEqual({ kind: "failure", cause: "tls_error" })
  expect(wrong.detail).toMatch(/certificate|altnames/i)
  expect(other.mails).toEqual([])
})

test("without the STARTTLS that is required, nothing is sent", async () => {
  const smtp = await SmtpReceiver.start({ disabledCommands: ["STARTTLS"] })
  const { outcome } = await open({ port: smtp.port, security: "starttls" }).send(REQUEST)
  expect(outcome).toEqual({ kind: "failure", cause: "tls_error" })
  expect(smtp.mails).toEqual([])
})

test("a wrong password is refused for good, and not repeated", async () => {
  const { ca, good } = authority()
  const smtp = await SmtpReceiver.start({ ...good })
  const server = { port: smtp.port, security: "starttls", ca, login: login("hidden-password") } as const
  const result = await open(server).send(REQUEST)
  expect(result.outcome).toMatchObject({
    kind: "ack",
    result: "permanent",
    detail: expect.stringMatching(/^535 /),
  })
  expect(JSON.stringify(result)).not.toContain("hidden-password")
})

test.each([
  [451, "4.7.1 greylisted", "transient"],
  [421, "4.3.2 shutting down", "transient"],
  [550, "5.7.1 refused", "permanent"],
  [552, "5.3.4 too big", "permanent"],
] as const)("after a reply of %i the mail is %s", async (code, text, result) => {
  const smtp = await SmtpReceiver.start()
  smtp.answers = { data: () => ({ code, text }) }
  const { outcome } = await open({ port: smtp.port }).send(REQUEST)
  expect(outcome).toEqual({ kind: "ack", result, detail: `${code} ${text}` })
})

test("a recipient that is refused for now gets the mail later; one that is refused for good keeps no other from it", async () => {
  const smtp = await SmtpReceiver.start()
  const reply = { code: 0, text: "x" }
  smtp.answers = { recipient: (address) => (address.startsWith("ops") ? { ...reply } : null) }
  const transport = open({ port: smtp.port })
  reply.code = 450
  expect((await transport.send(REQUEST)).outcome).toMatchObject({ kind: "ack", result: "transient" })
  reply.code = 550
  expect((await transport.send(REQUEST)).outcome).toMatchObject({
    kind: "ack",
    result: "success",
    detail: expect.stringContaining("refused: 550 x"),
  })
  smtp.answers = { recipient: () => ({ code: 550, text: "nobody" }) }
  expect((await transport.send(REQUEST)).outcome).toMatchObject({ kind: "ack", result: "permanent" })
})

test("a server that cannot be reached is a failure with its cause", async () => {
  const smtp = await SmtpReceiver.start()
  const { port } = smtp
  await smtp.close()
  expect((await open({ port }).send(REQUEST)).outcome).toEqual({
    kind: "failure",
    cause: "connection_refused",
  })
  const nowhere = await open({ port, host: "smtp.invalid" }).send(REQUEST)
  expect(nowhere.outcome).toEqual({ kind: "failure", cause: "dns_error" })
})

test("a server that hangs is cut off at the deadline, and by a shutdown", async () => {
  const smtp = await SmtpReceiver.start()
  smtp.answers = { hangs: true }
  const clock = new TestClock()
  const transport = open({ port: smtp.port }, MAIL, clock)
  const late = transport.send(REQUEST)
  await smtp.arrived(1)
  clock.advance(REQUEST.timeoutMs)
  expect((await late).outcome).toEqual({ kind: "failure", cause: "timeout" })
  const cut = transport.send(REQUEST)
  await smtp.arrived(2)
  expect(transport.interrupt()).toBe(1)
  expect((await cut).outcome).toEqual({ kind: "interrupted" })
})

test("a notification that is composed while the process stops is not sent", async () => {
  const clock = systemClock()
  const guard = loopbackGuard(clock)
  onTestFinished(() => guard.close())
  const composed = Promise.withResolvers<null>()
  const transport = new NotifyTransport(clock, new HttpTransport(clock, guard), () => composed.promise)
  const sent = transport.send(REQUEST)
  transport.interrupt()
  composed.resolve(null)
  expect((await sent).outcome).toEqual({ kind: "interrupted" })
})
