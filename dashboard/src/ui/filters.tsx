/** Filters of a list. They are in the page's address: a reload, a link and the back button keep them. */
import { useEffect, useState } from "preact/hooks"
import { filterOf, setFilters } from "../router.ts"

export function TextFilter({
  name,
  label,
  placeholder,
}: {
  readonly name: string
  readonly label: string
  readonly placeholder?: string
}) {
  const value = filterOf(name) ?? ""
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const apply = () => setFilters({ [name]: text.trim() })
  return (
    <label class="filter">
      <span>{label}</span>
      <input
        type="search"
        value={text}
        placeholder={placeholder}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={apply}
        onKeyDown={(event) => event.key === "Enter" && apply()}
        data-search={name === "q" ? "" : undefined}
      />
    </label>
  )
}

export function ChoiceFilter({
  name,
  label,
  choices,
  all = "All",
}: {
  readonly name: string
  readonly label: string
  /** The value, and its label. */
  readonly choices: readonly (readonly [string, string])[]
  readonly all?: string
}) {
  const value = filterOf(name) ?? ""
  const isKnown = value === "" || choices.some(([known]) => known === value)
  return (
    <label class="filter">
      <span>{label}</span>
      <select value={value} onChange={(event) => setFilters({ [name]: event.currentTarget.value })}>
        <option value="">{all}</option>
        {!isKnown && <option value={value}>{value}</option>}
        {choices.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}
