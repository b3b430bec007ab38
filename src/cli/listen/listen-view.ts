/** The lines of the live table, for a terminal of a given size. */
import { column, printable, wrapped } from "../../core/text.ts"
import { targetOf } from "../agent-line.ts"
import { type Column, type TableStyle, tableLines } from "../table.ts"
import { type ListenState, selectedOf, type Webhook } from "./listen-state.ts"

export interface View {
  readonly columns: number
  readonly rows: number
  readonly paint: TableStyle["paint"]
}

interface Row extends Webhook {
  readonly isSelected: boolean
}

const COLUMNS: readonly Column<Row>[] = [
  { title: " ", value: ({ isSelected }) => (isSelected ? ">" : " ") },
  { title: "TIME", value: ({ at }) => clockTime(at) },
  { title: "REQUEST", value: ({ event }) => targetOf(event), cut: true, least: 12 },
  { title: "TYPE", value: ({ event }) => event.eventType, cut: true, minor: true },
  { title: "ANSWER", value: answerText, mood: answerMood },
  { title: "MS", value: ({ answer }) => (answer === null ? " " : answer.durationMs), right: true },
  { title: "TRY", value: ({ event }) => event.attempt, right: true },
]

const KEYS = "j k select · r send again · p print · q end"

/** Never more lines than the terminal has. */
export function listenLines(state: ListenState, { columns, rows, paint }: View): string[] {
  const below = [...sentences(state, columns), column(KEYS, columns).trimEnd()]
  // The table's head, the empty line below it, and the line of the cursor.
  const room = Math.max(1, rows - below.length - 3)
  const table =
    state.webhooks.length === 0 ? [] : tableLines(visible(state, room), COLUMNS, { width: columns, paint })
  const lines = [...table, ...(table.length === 0 ? [] : [""]), ...below]
  return lines.slice(-Math.max(1, rows - 1))
}

/** The rows around the selected one. */
function visible(state: ListenState, room: number): Row[] {
  const { webhooks } = state
  const selected = selectedOf(state)
  const at = webhooks.findIndex(({ number }) => number === selected?.number)
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), webhooks.length - room))
  return webhooks.slice(first, first + room).map((one) => ({ ...one, isSelected: one === selected }))
}

function sentences(state: ListenState, columns: number): string[] {
  const { problem, notice, webhooks } = state
  const waiting = webhooks.length === 0 && problem === null ? "Waiting for webhooks." : null
  return [problem, notice ?? failureOf(selectedOf(state)) ?? waiting]
    .filter((sentence) => sentence !== null)
    .flatMap((sentence) => wrapped(printable(sentence), columns))
}

/** The table has no room for the reason. */
function failureOf(webhook: Webhook | null): string | null {
  const { error = null, result } = webhook?.answer?.outcome ?? {}
  if (error === null) return null
  return result === "permanent"
    ? `${error}; the webhook is rejected.`
    : `${error}; the webhook is tried again.`
}

function answerText({ answer, isContinued }: Webhook): string {
  if (answer === null) return "…"
  const { status, result } = answer.outcome
  const said = status === null ? "no answer" : `${status}`
  if (result === "success" || isContinued) return said
  return `${said}, ${result === "permanent" ? "rejected" : "retrying"}`
}

function answerMood({ answer }: Webhook): "good" | "bad" | null {
  if (answer === null) return null
  return answer.outcome.result === "success" ? "good" : "bad"
}

/** Local: the clock that the user looks at. */
export function clockTime(at: Date): string {
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => `${part}`.padStart(2, "0")).join(":")
}
