/**
 * A notification as a message of Slack's incoming webhooks. Slack's limits: 50 blocks; a header of 150 characters, a section's text of
 * 3000 and its fields, at most 10, of 2000 each; context elements of 3000. `text` is what notifications and screen readers show.
 */
import type { Notification, NotificationSubject, Severity } from "../notification.ts"
import { cut, cutReplaced, iso, moreOf, oneLine, titleOf } from "./text.ts"

const HEADER = 150
const SECTION = 3000
const FIELD = 2000
const FALLBACK = 3000
const SUBJECT = 1500

const ICONS: { readonly [S in Severity]: string } = {
  critical: ":red_circle:",
  warning: ":large_orange_circle:",
  info: ":large_blue_circle:",
}
const RESOLVED_ICON = ":large_green_circle:"

const ESCAPES: { readonly [char: string]: string } = { "&": "&amp;", "<": "&lt;", ">": "&gt;" }

/** Without these three characters a text can neither mention a channel nor hide a link. */
function escaped(text: string, most: number): string {
  return cutReplaced(text.toWellFormed(), most, (char) => ESCAPES[char] ?? char)
}

/** `verbatim`: Slack does not turn names and addresses in the text into mentions and links. */
const mrkdwn = (text: string) => ({ type: "mrkdwn", text, verbatim: true })
const section = (text: string) => ({ type: "section", text: mrkdwn(text) })

export function slackMessage(notification: Notification): object {
  const { kind, severity, summary, description, startedAt, endedAt, subjects } = notification
  const icon = kind === "resolved" && endedAt !== null ? RESOLVED_ICON : ICONS[severity]
  const title = titleOf(notification)
  const header = cut(`${icon} ${title}`, HEADER)
  const fields = [
    ["Severity", severity],
    ["Rule", oneLine(notification.rule)],
    ["Since", iso(startedAt)],
    ...(endedAt === null ? [] : [["Ended", iso(endedAt)]]),
  ]
  const more = moreOf(notification)
  return {
    text: escaped(`${title}: ${oneLine(summary)}`, FALLBACK),
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      { type: "header", text: { type: "plain_text", text: header, emoji: true } },
      section(`*${escaped(oneLine(summary), SECTION - 2)}*`),
      ...(description.trim() === "" ? [] : [section(escaped(description, SECTION))]),
      {
        type: "section",
        fields: fields.map(([name, value]) => mrkdwn(`*${name}*\n${escaped(value!, FIELD - 20)}`)),
      },
      ...subjects.map((subject) => section(subjectLine(subject))),
      ...(more === null ? [] : [{ type: "context", elements: [mrkdwn(more)] }]),
    ],
  }
}

function subjectLine({ name, since, detail }: NotificationSubject): string {
  const about = detail === "" ? "" : `\n${escaped(oneLine(detail), SUBJECT)}`
  return `• *${escaped(oneLine(name), SUBJECT - 100)}* since ${iso(since)}${about}`
}
