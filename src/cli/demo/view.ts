/** Renders the state of the demo as lines. */
import { styleText } from "node:util"
import { column, columnRight } from "../../core/text.ts"
import type { Delivery } from "../../index.ts"
import type { Audit } from "./audit.ts"
import { type DemoEndpoint, ENDPOINTS, EVENTS } from "./endpoints.ts"
import { seconds } from "./narrate.ts"
import { CHAPTERS, type DemoState, type Line, type Tone } from "./state.ts"

type Style = Parameters<typeof styleText>[0]

const UID = 9
const STORY = 29
const CELL = 4
const ANSWER = 16
const NEXT = 8
const NAME = 11

function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout })
}

export function heading(state: DemoState, nowMs: number): string[] {
  const engine = columnRight(`engine ${state.engine}`, 36)
  const time = columnRight(seconds(nowMs - state.startedAt), 29)
  const engineText = state.engine === "killed" ? paint(["bold", "red"], engine) : engine
  return [
    ` ${paint("bold", "posthorn demo")}${engineText}${time}`,
    ` ${paint("dim", state.file)}`,
    ` ${chapters(state)}`,
  ]
}

/** Brackets mark the current chapter without colours too. */
function chapters(state: DemoState): string {
  const now = CHAPTERS.indexOf(state.chapter)
  const names = CHAPTERS.map((name, i) => {
    if (i === now) return paint(["bold", "cyan"], `[${name}]`)
    return paint(i < now ? "reset" : "dim", ` ${name} `)
  })
  return names.join(paint("dim", "›"))
}

export function table(state: DemoState, nowMs: number): string[] {
  const { pending, failed, delivered, dead } = state.snapshot.counts
  const events = EVENTS.map((_, i) => column(`#${i + 1}`, CELL)).join("")
  const answers = column("last answer", ANSWER) + columnRight("next try", NEXT)
  const totals = [
    paint("bold", `${state.accepted} messages`),
    paint("green", `✓ ${delivered} delivered`),
    paint("yellow", `↻ ${pending + failed} open`),
    paint("red", `✗ ${dead} dead`),
    `${state.snapshot.attempts.length} attempts`,
  ]
  return [
    paint("dim", ` ${column("endpoint", UID)}${column("its receiver", STORY)}${events}${answers}`),
    ...ENDPOINTS.map((part) => row(state, part, nowMs)),
    ` ${totals.join("   ")}`,
  ]
}

function row(state: DemoState, { uid, story }: DemoEndpoint, nowMs: number): string {
  const mine = state.snapshot.deliveries.filter(({ endpointId }) => state.uids.get(endpointId) === uid)
  const cells = EVENTS.map((_, i) =>
    cell(mine.find(({ messageId }) => state.numbers.get(messageId) === i + 1)),
  )
  const name = paint("bold", column(uid, UID)) + column(story, STORY)
  return ` ${name}${cells.join("")}${lastAnswer(state, uid)}${nextTry(mine, nowMs)}`
}

/** Status and number of attempts. */
function cell(delivery: Delivery | undefined): string {
  if (delivery === undefined) return " ".repeat(CELL)
  const { status, attemptCount } = delivery
  switch (status) {
    case "pending":
      return paint("dim", column("·", CELL))
    case "failed":
      return paint("yellow", column(`↻${attemptCount}`, CELL))
    case "delivered":
      return paint("green", column(`✓${attemptCount}`, CELL))
    case "dead":
      return paint("red", column(`✗${attemptCount}`, CELL))
    default:
      return status satisfies never
  }
}

/** Attempts are listed newest first. */
function lastAnswer(state: DemoState, uid: string): string {
  const last = state.snapshot.attempts.find(({ endpointId }) => state.uids.get(endpointId) === uid)
  if (last === undefined) return " ".repeat(ANSWER)
  if (last.status === "unknown") return paint("red", column("cut off", ANSWER))
  const text = last.responseStatus === null ? `${last.error}` : `HTTP ${last.responseStatus}`
  return paint(last.status === "succeeded" ? "green" : "yellow", column(text, ANSWER))
}

function nextTry(mine: readonly Delivery[], nowMs: number): string {
  const due = mine.flatMap(({ status, nextRetryAt }) =>
    status === "failed" && nextRetryAt ? [nextRetryAt.getTime()] : [],
  )
  if (due.length === 0) return " ".repeat(NEXT)
  const waitMs = Math.min(...due) - nowMs
  return paint("yellow", columnRight(waitMs > 0 ? seconds(waitMs) : "now", NEXT))
}

const TONES: { readonly [tone in Tone]: Style } = {
  good: "green",
  wait: "yellow",
  bad: "red",
  loud: ["bold", "cyan"],
}

export function logLine({ atMs, tone, who, what }: Line, width: number): string {
  const time = columnRight(seconds(atMs), 6)
  const text = ` ${time}  ${who === "" ? what : column(who, UID) + what}`
  return paint(TONES[tone], [...text].length > width ? column(text, width) : text)
}

export function auditLines({ summary, problems }: Audit): string[] {
  const rows = summary.map(({ name, text }) => ` ${paint("bold", column(name, NAME))}${text}`)
  const end =
    problems.length === 0
      ? [paint(["bold", "green"], " The books balance: nothing lost, nothing taken twice, order kept.")]
      : problems.map((problem) => paint(["bold", "red"], ` The books do not balance: ${problem}.`))
  return [...rows, "", ...end]
}
