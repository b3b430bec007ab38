/** The filter by time: a span until now, or two times of the reader's zone. */
import { useMemo } from "preact/hooks"
import { filterOf, setFilters } from "../router.ts"

const SPANS: readonly (readonly [string, string, number])[] = [
  ["1h", "Last hour", 3_600_000],
  ["24h", "Last 24 hours", 86_400_000],
  ["7d", "Last 7 days", 7 * 86_400_000],
  ["30d", "Last 30 days", 30 * 86_400_000],
]

export const TIME_FILTERS = ["last", "after", "before"] as const

interface TimeSpan {
  readonly after: string | null
  readonly before: string | null
  /** A span that makes no sense. */
  readonly problem: string | null
}

/** A span until now begins at the same time for as long as the page is shown. */
export function useTimeSpan(): TimeSpan {
  const [last, after, before] = TIME_FILTERS.map(filterOf)
  return useMemo(() => {
    if (last !== null && last !== undefined && last !== "custom") {
      const span = SPANS.find(([name]) => name === last)
      if (span === undefined) return noSpan(`The time “${last}” is not one of the choices.`)
      return { after: new Date(Date.now() - span[2]).toISOString(), before: null, problem: null }
    }
    const isBackwards = Boolean(after && before) && Date.parse(before!) <= Date.parse(after!)
    if (isBackwards) return noSpan("The time “until” must be later than the time “from”.")
    return { after: after ?? null, before: before ?? null, problem: null }
  }, [last, after, before])
}

const noSpan = (problem: string): TimeSpan => ({ after: null, before: null, problem })

export function TimeFilter({ label = "Received" }: { readonly label?: string }) {
  const isCustom = filterOf("last") === "custom" || filterOf("after") !== null || filterOf("before") !== null
  const choose = (value: string) =>
    setFilters({ last: value, ...(value === "custom" ? {} : { after: null, before: null }) })
  return (
    <>
      <label class="filter">
        <span>{label}</span>
        <select
          value={isCustom ? "custom" : (filterOf("last") ?? "")}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          <option value="">Any time</option>
          {SPANS.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
          <option value="custom">From … until …</option>
        </select>
      </label>
      {isCustom && (
        <>
          <At name="after" label="From" />
          <At name="before" label="Until" />
        </>
      )}
    </>
  )
}

function At({ name, label }: { readonly name: "after" | "before"; readonly label: string }) {
  return (
    <label class="filter">
      <span>{label}</span>
      <input
        type="datetime-local"
        step="1"
        value={toLocal(filterOf(name))}
        onChange={({ currentTarget: { value } }) =>
          setFilters({ [name]: value === "" ? null : new Date(value).toISOString() })
        }
      />
    </label>
  )
}

/** As the field wants it: without a zone. */
export function toLocal(iso: string | null): string {
  const at = iso === null ? Number.NaN : Date.parse(iso)
  if (Number.isNaN(at)) return ""
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}
