/** Texts of strangers: payloads, headers, responses. They are shown as text, never as HTML. */

import { parseExactly } from "../api.ts"
import { bytes } from "../format.ts"
import { Copy } from "./basics.tsx"

interface PayloadProps {
  /** A text, or parsed JSON. */
  readonly value: unknown
  readonly label: string
}

/** Longer payloads are cut on the page; the copy has all of it. */
const SHOWN = 100_000

export function Payload({ value, label }: PayloadProps) {
  const text = typeof value === "string" ? pretty(value) : JSON.stringify(value, null, 2)
  if (text === undefined || text === "") return <p class="faint">Empty.</p>
  return (
    <div class="payload">
      <section class="scroll" tabIndex={0} aria-label={label}>
        <pre>{text.slice(0, SHOWN)}</pre>
      </section>
      <Copy text={text} label={`Copy ${label}`} />
      {text.length > SHOWN && (
        <p class="hint">
          The first {bytes(SHOWN)} of {bytes(text.length)}. Copy it to see all.
        </p>
      )}
    </div>
  )
}

function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    return JSON.stringify(parseExactly(text), null, 2)
  } catch {
    return text
  }
}

export function HeaderList({ headers, label }: { readonly headers: object; readonly label: string }) {
  const pairs: readonly (readonly [string, unknown])[] = Array.isArray(headers)
    ? (headers as readonly (readonly [string, unknown])[])
    : Object.entries(headers)
  if (pairs.length === 0) return <p class="faint">None.</p>
  return <Payload label={label} value={pairs.map(([name, value]) => `${name}: ${value}`).join("\n")} />
}
