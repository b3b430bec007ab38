/** Short messages about actions that succeeded or were refused; each can be dismissed. */
import { signal } from "@preact/signals"
import type { Tone } from "./basics.tsx"

interface Notice {
  readonly number: number
  readonly tone: Tone
  readonly text: string
}

const notices = signal<readonly Notice[]>([])
const SHOWN_MS = 8000
let count = 0

export function notify(tone: Tone, text: string): void {
  const number = ++count
  notices.value = [...notices.value.slice(-3), { number, tone, text }]
  // Errors stay until they are dismissed.
  if (tone !== "bad") setTimeout(() => dismiss(number), SHOWN_MS)
}

function dismiss(number: number): void {
  notices.value = notices.value.filter((one) => one.number !== number)
}

export function Notices() {
  return (
    <div class="notices" aria-live="polite">
      {notices.value.map(({ number, tone, text }) => (
        <div key={number} class={`notice ${tone}`}>
          <p>{text}</p>
          <button type="button" aria-label="Dismiss" onClick={() => dismiss(number)}>
            ×
          </button>
        </div>
      ))}
    </div>
  )
}
