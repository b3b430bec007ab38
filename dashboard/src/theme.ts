/** Light, dark, or as the system says. The choice is kept in this browser. */
import { effect, signal } from "@preact/signals"

const THEMES = ["system", "light", "dark"] as const
export type Theme = (typeof THEMES)[number]

const STORED = "posthorn-theme"

function stored(): Theme {
  try {
    const value = localStorage.getItem(STORED)
    return THEMES.find((one) => one === value) ?? "system"
  } catch {
    // An embedded page may have no storage.
    return "system"
  }
}

export const theme = signal<Theme>(stored())

effect(() => {
  document.documentElement.dataset.theme = theme.value
  try {
    localStorage.setItem(STORED, theme.value)
  } catch {
    // See above.
  }
})

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!
}
