/** The phases of an attempt, one after the other. */
import type { Attempt } from "../types.ts"
import { type BarRow, Bars } from "../ui/bars.tsx"

export function Timing({ attempt }: { readonly attempt: Attempt }) {
  const { timing, responseDurationMs } = attempt
  if (timing === null) return <p class="hint">It took {responseDurationMs} ms. Its phases are not known.</p>
  const phases: readonly (readonly [string, number | null])[] = [
    ["DNS", timing.dnsMs],
    ["Connect", timing.connectMs],
    ["TLS", timing.tlsMs],
    ["First byte", timing.firstByteMs],
  ]
  let start = 0
  const rows: BarRow[] = []
  for (const [title, ms] of phases) {
    if (ms === null) continue
    rows.push({ key: title, title, start, value: ms, amount: `${ms} ms` })
    start += ms
  }
  const rest = responseDurationMs - start
  if (rest > 0) {
    const title = timing.firstByteMs === null ? "No answer" : "Rest"
    const tone = timing.firstByteMs === null ? "bad" : undefined
    rows.push({ key: title, title, start, value: rest, amount: `${rest} ms`, ...(tone && { tone }) })
  }
  return (
    <>
      <Bars rows={rows} whole={Math.max(1, responseDurationMs)} />
      {timing.connectMs === null && timing.firstByteMs !== null && (
        <p class="hint">It used a connection that was open already.</p>
      )}
    </>
  )
}
