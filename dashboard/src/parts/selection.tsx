/** Selected rows of a list: a column with boxes, and a bar of actions while something is selected. */
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { plural } from "../format.ts"
import { notify } from "../ui/notices.tsx"
import type { Column } from "../ui/table.tsx"

export interface Selection<T> {
  /** Only rows that are shown: a row that left the list is not selected any more. */
  readonly rows: readonly T[]
  readonly column: Column<T>
  clear(): void
}

export interface SelectedIds {
  readonly ids: ReadonlySet<string>
  readonly setIds: (ids: ReadonlySet<string>) => void
  /** While a row is selected its list stands still: new rows would push it out. */
  readonly isLive: boolean
}

export function useSelectedIds(): SelectedIds {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  return { ids, setIds, isLive: ids.size === 0 }
}

export function useSelection<T extends { readonly id: string }>(
  { ids, setIds }: SelectedIds,
  shown: readonly T[],
  nameOf: (row: T) => string,
): Selection<T> {
  const rows = shown.filter(({ id }) => ids.has(id))
  useEffect(() => {
    if (rows.length < ids.size) setIds(new Set(rows.map(({ id }) => id)))
  }, [rows.length, ids])
  const isAll = shown.length > 0 && rows.length === shown.length
  const toggle = (id: string) => {
    const next = new Set(ids)
    if (!next.delete(id)) next.add(id)
    setIds(next)
  }
  return {
    rows,
    clear: () => setIds(new Set()),
    column: {
      title: "Select",
      head: (
        <input
          type="checkbox"
          aria-label="Select all on this page"
          checked={isAll}
          onChange={() => setIds(new Set(isAll ? [] : shown.map(({ id }) => id)))}
        />
      ),
      cell: (row) => (
        <input
          type="checkbox"
          aria-label={`Select ${nameOf(row)}`}
          checked={ids.has(row.id)}
          onChange={() => toggle(row.id)}
        />
      ),
    },
  }
}

export function SelectionBar({
  count,
  children,
}: {
  readonly count: number
  readonly children: ComponentChildren
}) {
  return (
    <section class="selection" aria-label="Selected rows">
      <span aria-live="polite">
        {count === 0 ? "None selected" : `${plural(count, "row")} selected; the list stands still meanwhile`}
      </span>
      {count > 0 && children}
    </section>
  )
}

/** At most this many requests at a time. */
const AT_ONCE = 4

/** Does it for each of the rows, and says how many were refused, and why the first was. */
export async function forEach<T>(
  rows: readonly T[],
  run: (row: T) => Promise<unknown>,
  done: string,
): Promise<void> {
  const left = [...rows]
  const errors: Error[] = []
  const work = async () => {
    for (let row = left.shift(); row !== undefined; row = left.shift()) {
      try {
        await run(row)
      } catch (error) {
        errors.push(error as Error)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  const count = rows.length - errors.length
  if (count > 0) notify("good", `${plural(count, "delivery", "deliveries")} ${done}.`)
  if (errors.length > 0)
    notify(
      "bad",
      `${plural(errors.length, "delivery was", "deliveries were")} refused: ${errors[0]!.message}`,
    )
}
