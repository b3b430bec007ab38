/** The keys of the live table: from the terminal's bytes to what happens. */
import { type ListenState, moved, selectedOf, type Webhook } from "./listen-state.ts"

export type Key = "down" | "up" | "again" | "print" | "end"

const ESC = "\x1b"
const KEYS: { readonly [typed: string]: Key } = {
  j: "down",
  [`${ESC}[B`]: "down",
  [`${ESC}OB`]: "down",
  k: "up",
  [`${ESC}[A`]: "up",
  [`${ESC}OA`]: "up",
  r: "again",
  p: "print",
  q: "end",
  // Ctrl-C and Ctrl-D: a terminal in raw mode sends no signals.
  "\x03": "end",
  "\x04": "end",
}
/** An escape sequence as a whole, so that the letters in it are no keys. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals begin the sequences of their keys with it
const TYPED = /\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|./gsu

/** One read of a terminal may have several keys. */
export function keysIn(typed: string): Key[] {
  return (typed.match(TYPED) ?? []).flatMap((one) => KEYS[one] ?? [])
}

export type KeyAction =
  | { readonly kind: "again" | "print"; readonly webhook: Webhook }
  | { readonly kind: "end" }

export interface Pressed {
  readonly state: ListenState
  readonly action: KeyAction | null
}

export function pressed(before: ListenState, key: Key): Pressed {
  const state = { ...before, notice: null }
  switch (key) {
    case "down":
      return { state: moved(state, 1), action: null }
    case "up":
      return { state: moved(state, -1), action: null }
    case "again":
    case "print": {
      const webhook = selectedOf(state)
      if (webhook === null) return { state: { ...state, notice: "No webhook has come yet." }, action: null }
      if (key === "again" && webhook.answer === null)
        return { state: { ...state, notice: "The local program has not answered it yet." }, action: null }
      return { state, action: { kind: key, webhook } }
    }
    case "end":
      return { state, action: { kind: "end" } }
    default:
      return key satisfies never
  }
}
