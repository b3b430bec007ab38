/** Bars side by side: shares of a whole. */
import type { ComponentChildren } from "preact"
import type { Tone } from "./basics.tsx"

export interface BarRow {
  readonly key: string
  readonly title: ComponentChildren
  readonly value: number
  /** Where the bar begins; at 0 unless given. */
  readonly start?: number
  /** The text behind the bar. */
  readonly amount: ComponentChildren
  readonly tone?: Tone
}

export function Bars({ rows, whole }: { readonly rows: readonly BarRow[]; readonly whole?: number }) {
  const most = whole ?? Math.max(1, ...rows.map(({ value }) => value))
  return (
    <div class="bars">
      {rows.map(({ key, title, value, start = 0, amount, tone }) => (
        <div class="bar" key={key}>
          <span>{title}</span>
          <span class="track" aria-hidden="true">
            <span
              class={`fill ${tone ?? ""}`}
              style={{
                display: "block",
                marginLeft: `${Math.min(100, (100 * start) / most)}%`,
                width: `${Math.min(100, (100 * value) / most)}%`,
              }}
            />
          </span>
          <span class="amount">{amount}</span>
        </div>
      ))}
    </div>
  )
}
