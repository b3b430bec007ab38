/** Lists: tables of rows by page, with links, keyboard selection, and the states in between. */
import type { ComponentChildren } from "preact"
import type { List, Resource } from "../resource.ts"
import { navigate, path, query, setFilters } from "../router.ts"
import { Button, Failure, Skeleton } from "./basics.tsx"

export interface Column<T> {
  readonly title: string
  /** Shown instead of the title. */
  readonly head?: ComponentChildren
  readonly cell: (row: T) => ComponentChildren
  readonly align?: "right"
  /** Hidden on narrow screens. */
  readonly minor?: boolean
}

interface TableProps<T> {
  readonly label: string
  readonly rows: readonly T[]
  readonly columns: readonly Column<T>[]
  readonly keyOf: (row: T, index: number) => string
  /** Where Enter on the selected row leads. */
  readonly hrefOf?: (row: T) => string
  /** The rows are of the filters before. */
  readonly isBusy?: boolean
}

export function Table<T>({ label, rows, columns, keyOf, hrefOf, isBusy = false }: TableProps<T>) {
  return (
    <section class="table-frame" tabIndex={0} aria-label={label} aria-busy={isBusy}>
      <table>
        <thead>
          <tr>
            {columns.map(({ title, head = title, align, minor }) => (
              <th key={title} scope="col" class={`${align ?? ""} ${minor ? "minor" : ""}`}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={keyOf(row, i)} data-row={keyOf(row, i)} data-href={hrefOf?.(row)}>
              {columns.map(({ title, cell, align, minor }) => (
                <td key={title} data-title={title} class={`${align ?? ""} ${minor ? "minor" : ""}`}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

export interface ListViewProps<T> extends Omit<TableProps<T>, "rows" | "isBusy"> {
  readonly list: Resource<List<T>>
  readonly empty: ComponentChildren
}

/** A page of a list, and the links to the pages beside it. */
export function ListView<T>({ list, empty, ...table }: ListViewProps<T>) {
  const { data, error, reload } = list
  if (data === null) return error === null ? <Skeleton lines={8} /> : <ListFailure list={list} />
  return (
    <>
      {error !== null && <Failure error={error} retry={reload} />}
      {data.data.length === 0 ? empty : <Table {...table} rows={data.data} isBusy={list.isLoading} />}
      <Pager list={data} />
    </>
  )
}

/** Filters in the address that make no sense are the likely cause of a refusal. */
function ListFailure({ list: { error, reload } }: { readonly list: Resource<unknown> }) {
  const isRefused = error!.status === 404 || error!.status === 422
  return (
    <div class="stack">
      <Failure error={error!} retry={reload} />
      {isRefused && query.value.size > 0 && (
        <Button onClick={() => navigate(path.value)}>Clear the filters</Button>
      )}
    </div>
  )
}

function Pager({ list }: { readonly list: Pick<List<unknown>, "iterator" | "prevIterator" | "done"> }) {
  const isFirst = query.value.get("iterator") === null
  if (isFirst && list.done) return null
  const go = (iterator: string | null) => setFilters({ iterator })
  return (
    <nav class="pager" aria-label="Pages of the list">
      <button type="button" class="button plain" disabled={isFirst} onClick={() => go(null)}>
        First
      </button>
      <button
        type="button"
        class="button plain"
        disabled={isFirst || list.prevIterator === null}
        onClick={() => go(list.prevIterator)}
      >
        Previous
      </button>
      <button
        type="button"
        class="button plain"
        disabled={list.done || list.iterator === null}
        onClick={() => go(list.iterator)}
      >
        Next
      </button>
    </nav>
  )
}
