/** A notification as a mail, as text and as HTML. */
import { createHash } from "node:crypto"
import type { Mail } from "../../transport/notify/outgoing.ts"
import type { Notification } from "../notification.ts"
import type { MailSettings } from "./channel.ts"
import { cut, cutReplaced, iso, moreOf, oneLine, titleOf } from "./text.ts"

const SUBJECT = 200
const PART = 4000

/** `messageId` is the same for each attempt, so that a mail that arrives twice can be recognised. */
export function mailOf(notification: Notification, { from, to }: MailSettings, messageId: string): Mail {
  const domain = from.slice(from.lastIndexOf("@") + 1)
  return {
    from,
    to,
    subject: cut(`[Posthorn] ${titleOf(notification)}: ${oneLine(notification.summary)}`, SUBJECT),
    text: textOf(notification),
    html: htmlOf(notification),
    messageId: `<${messageId}@${domain}>`,
    thread: `<${threadOf(notification)}@${domain}>`,
    isUrgent: notification.severity === "critical" && notification.kind !== "resolved",
  }
}

/**
 * All mails of a group refer to the same message, which is never sent: mail programs make one thread of them. An id of a mail that was
 * sent would need to be stored, and the first mail of a group may be lost.
 */
function threadOf({ groupKey }: Notification): string {
  return `posthorn-${createHash("sha256").update(groupKey).digest("hex").slice(0, 32)}`
}

/** Name and value, in both forms. */
function facts({ severity, rule, startedAt, endedAt }: Notification): readonly (readonly [string, string])[] {
  return [
    ["Severity", severity],
    ["Rule", oneLine(rule)],
    ["Since", iso(startedAt)],
    ...(endedAt === null ? [] : [["Ended", iso(endedAt)] as const]),
  ]
}

function textOf(notification: Notification): string {
  const { summary, description, subjects } = notification
  const more = moreOf(notification)
  const listed = subjects.map(({ name, since, detail }) => {
    const about = detail === "" ? "" : `\n  ${cut(oneLine(detail), PART)}`
    return `- ${cut(oneLine(name), PART)}, since ${iso(since)}${about}`
  })
  const parts = [
    cut(oneLine(summary), PART),
    cut(description.toWellFormed(), PART),
    facts(notification)
      .map(([name, value]) => `${name}: ${value}`)
      .join("\n"),
    [...listed, ...(more === null ? [] : [more])].join("\n"),
  ]
  return `${parts.filter((part) => part.trim() !== "").join("\n\n")}\n`
}

const ESCAPES: { readonly [char: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
}

function escaped(text: string): string {
  return cutReplaced(text.toWellFormed(), 2 * PART, (char) => ESCAPES[char] ?? char)
}

function htmlOf(notification: Notification): string {
  const { summary, description, subjects } = notification
  const more = moreOf(notification)
  const listed = subjects.map(({ name, since, detail }) => {
    const about = detail === "" ? "" : `<br>${escaped(oneLine(detail))}`
    return `<li><b>${escaped(oneLine(name))}</b>, since ${iso(since)}${about}</li>`
  })
  const rows = facts(notification).map(
    ([name, value]) => `<tr><th align="left">${name}</th><td>${escaped(value)}</td></tr>`,
  )
  return [
    `<h2>${escaped(titleOf(notification))}</h2>`,
    `<p><b>${escaped(oneLine(summary))}</b></p>`,
    description.trim() === "" ? "" : `<p style="white-space: pre-line">${escaped(description)}</p>`,
    `<table>${rows.join("")}</table>`,
    listed.length === 0 ? "" : `<ul>${listed.join("")}</ul>`,
    more === null ? "" : `<p>${more}</p>`,
  ].join("\n")
}
