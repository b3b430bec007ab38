/** The time, for texts such as "3 min ago" and countdowns. */
import { signal } from "@preact/signals"

export const now = signal(Date.now())

setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1000)
document.addEventListener("visibilitychange", () => {
  now.value = Date.now()
})
