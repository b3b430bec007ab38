/** Keys: `/` search, `?` help, `j` and `k` rows, Enter opens, `g` and a letter a page, `r` reads again, `t` the theme. */
import { signal } from "@preact/signals"
import type { MenuGroup } from "./navigation.ts"
import { refreshNow } from "./refresh.ts"
import { navigate } from "./router.ts"
import { nextTheme } from "./theme.ts"

export const isHelpOpen = signal(false)

/** For how long a letter after `g` counts. */
const SEQUENCE_MS = 1500

export function startKeyboard(menu: () => readonly MenuGroup[]): () => void {
  let goUntil = 0
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
    if (isTyping(event.target) || document.querySelector("dialog[open]") !== null) return
    const { key } = event
    if (performance.now() < goUntil) {
      goUntil = 0
      const item = menu()
        .flatMap(({ items }) => items)
        .find((one) => one.key === key)
      if (item !== undefined) {
        event.preventDefault()
        navigate(item.path)
      }
      return
    }
    if (key === "g") goUntil = performance.now() + SEQUENCE_MS
    else if (key === "/") focusSearch(event)
    else if (key === "?") isHelpOpen.value = true
    else if (key === "j") select(1)
    else if (key === "k") select(-1)
    else if (key === "Enter") open(event)
    else if (key === "r") refreshNow()
    else if (key === "t") nextTheme()
  }
  document.addEventListener("keydown", press)
  return () => document.removeEventListener("keydown", press)
}

/** A row's checkbox has the focus while `j` and `k` move on. */
const FIELDS = "input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable]"

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(FIELDS) !== null
}

function focusSearch(event: KeyboardEvent): void {
  const field =
    document.querySelector<HTMLInputElement>("main [data-search]") ??
    document.querySelector<HTMLInputElement>("[data-search]")
  if (field === null) return
  event.preventDefault()
  field.focus()
  field.select()
}

const rows = () => [...document.querySelectorAll<HTMLElement>("main [data-row]")]

function select(by: 1 | -1): void {
  const all = rows()
  const at = all.findIndex((row) => row.classList.contains("selected"))
  const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + by))]
  if (next === undefined) return
  all[at]?.classList.remove("selected")
  next.classList.add("selected")
  next.querySelector<HTMLElement>("a, button, input")?.focus({ preventScroll: true })
  next.scrollIntoView({ block: "nearest" })
}

/** A focused link or button acts by itself. */
function open(event: KeyboardEvent): void {
  if (event.target instanceof Element && event.target.closest("a, button, summary") !== null) return
  const href = rows().find((row) => row.classList.contains("selected"))?.dataset.href
  if (href !== undefined) navigate(href)
}
