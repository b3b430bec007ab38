/** A list with filters: it says how far it searched, and offers a way out of filters that find nothing or make no sense. */
import type { ComponentChildren } from "preact"
import { ApiError } from "../api.ts"
import type { List, Resource } from "../resource.ts"
import { filterOf, setFilters } from "../router.ts"
import { Button, Empty, Failure, Time } from "../ui/basics.tsx"
import { ListView, type ListViewProps } from "../ui/table.tsx"

interface FilterBarProps {
  /** The names of all filters, as they are in the address. */
  readonly names: readonly string[]
  /** Filters that the list needs: they are cleared only when the API refuses them. */
  readonly needed?: readonly string[]
  readonly filters: ComponentChildren
  /** The error of the filters; the API is not asked then. */
  readonly problem?: string | null
  readonly resource: Resource<unknown>
  /** Shown unless the filters are refused. */
  readonly children: ComponentChildren
}

/** The filters, with the API's error about those that make no sense. */
export function FilterBar({
  names,
  needed = [],
  filters,
  problem = null,
  resource,
  children,
}: FilterBarProps) {
  const isFiltered = isAnySet(names)
  const refused = problem ?? refusalOf(resource, isFiltered || needed.length > 0)
  return (
    <>
      <search class="filters" aria-label="Filters">
        {filters}
        {isFiltered && refused === null && <ClearFilters names={names} />}
      </search>
      {refused === null ? (
        children
      ) : (
        <div class="stack">
          <Failure
            error={new ApiError(422, { detail: `${refused} Change the filter, or clear the filters.` })}
          />
          <ClearFilters names={[...names, ...needed]} />
        </div>
      )}
    </>
  )
}

interface FilteredListProps<T> extends ListViewProps<T>, Omit<FilterBarProps, "resource" | "children"> {
  /** Between the filters and the list. */
  readonly above?: ComponentChildren
}

export function FilteredList<T>({
  names,
  needed = [],
  filters,
  problem = null,
  above,
  list,
  empty,
  ...table
}: FilteredListProps<T>) {
  return (
    <FilterBar names={names} needed={needed} filters={filters} problem={problem} resource={list}>
      <SearchedTo list={list} />
      {above}
      <ListView {...table} list={list} empty={isAnySet(names) ? <NothingFits names={names} /> : empty} />
    </FilterBar>
  )
}

const isAnySet = (names: readonly string[]) => names.some((name) => filterOf(name) !== null)

/** A 4xx that the filters, or an old iterator in the address, have caused. */
function refusalOf({ error }: Resource<unknown>, isFiltered: boolean): string | null {
  if (error === null || (error.status !== 422 && error.status !== 404)) return null
  if (!isFiltered && filterOf("iterator") === null) return null
  return /[.!?]$/.test(error.message) ? error.message : `${error.message}.`
}

function ClearFilters({ names }: { readonly names: readonly string[] }) {
  return (
    <Button onClick={() => setFilters(Object.fromEntries(names.map((name) => [name, null])))}>
      Clear the filters
    </Button>
  )
}

function NothingFits({ names }: { readonly names: readonly string[] }) {
  return (
    <Empty title="Nothing fits these filters.">
      <ClearFilters names={names} />
    </Empty>
  )
}

function SearchedTo({ list: { data } }: { readonly list: Resource<List<unknown>> }) {
  const to = data?.searchedTo
  if (to === undefined || to === null) return null
  return (
    <p class="hint">
      This page searched 10 000 rows, back to <Time at={to} />. “Next” searches further.
    </p>
  )
}
