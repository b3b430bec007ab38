/** Texts of notifications: cut to the limits of a service, and without characters that would change what surrounds them. */
import type { Notification } from "../notification.ts"

const ELLIPSIS = "…"

/** At most this many UTF-16 units. A pair of surrogates is not split. */
export function cut(text: string, most: number): string {
  return cutReplaced(text, most, (char) => char)
}

/** The same, with each character replaced; a replacement is not split either. */
export function cutReplaced(text: string, most: number, replace: (char: string) => string): string {
  let kept = ""
  let room = ""
  for (const char of text) {
    const part = replace(char)
    if (kept.length + part.length > most) return room + ELLIPSIS
    kept += part
    if (kept.length <= most - ELLIPSIS.length) room = kept
  }
  return kept
}

/** Control characters and line breaks become spaces, lone surrogates U+FFFD. */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
}

export function iso(at: number): string {
  return new Date(at).toISOString()
}

const TITLES: { readonly [K in Notification["kind"]]: string } = {
  firing: "Firing",
  resolved: "Resolved",
  repeated: "Still firing",
  dead_letters: "Dead letters",
  test: "Test",
}

/** `Firing: oldest-due`. A group of which some alerts ended goes on. */
export function titleOf({ kind, rule, endedAt }: Notification): string {
  const title = kind === "resolved" && endedAt === null ? "Partly resolved" : TITLES[kind]
  return kind === "test" || kind === "dead_letters" ? title : `${title}: ${oneLine(rule)}`
}

/** "and 137 more"; null when all are listed. */
export function moreOf({ more }: Notification): string | null {
  return more > 0 ? `and ${more} more` : null
}
