/** Reads the fields of forms, and shows those that many forms have. */

import type { List } from "../resource.ts"
import { useResource } from "../resource.ts"
import { filterOf, setFilters } from "../router.ts"
import type { Application } from "../types.ts"
import { Field } from "./dialog.tsx"

/** A trimmed text; null for an empty one. */
export function textOf(values: FormData, name: string): string | null {
  const text = String(values.get(name) ?? "").trim()
  return text === "" ? null : text
}

/** Null for an empty field. Throws a sentence for a text that is no number. */
export function numberOf(values: FormData, name: string, label: string): number | null {
  const text = textOf(values, name)
  if (text === null) return null
  const value = Number(text)
  if (!Number.isFinite(value)) throw new Error(`${label} must be a number, not "${text}".`)
  return value
}

/** Words between commas, spaces or line ends. */
export function wordsOf(values: FormData, name: string): string[] {
  return (textOf(values, name) ?? "").split(/[\s,]+/).filter((word) => word !== "")
}

/** Null for an empty field. Throws a sentence for a text that is no JSON object. */
export function objectOf(values: FormData, name: string, label: string): object | null {
  const text = textOf(values, name)
  if (text === null) return null
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error(`${label} is not valid JSON: ${(error as Error).message}.`)
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error(`${label} must be a JSON object, such as {"plan": "pro"}.`)
  return value
}

export function TextField({
  name,
  label,
  value,
  hint,
  required = false,
  type = "text",
  placeholder,
}: {
  readonly name: string
  readonly label: string
  readonly value?: string | number | null | undefined
  readonly hint?: string
  readonly required?: boolean
  readonly type?: "text" | "password" | "number" | "datetime-local" | "url"
  readonly placeholder?: string
}) {
  return (
    <Field label={label} hint={hint}>
      <input
        name={name}
        type={type as "text"}
        defaultValue={String(value ?? "")}
        required={required}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        step={type === "number" ? "any" : undefined}
      />
    </Field>
  )
}

export function ChoiceField({
  name,
  label,
  value,
  hint,
  choices,
}: {
  readonly name: string
  readonly label: string
  readonly value?: string | null | undefined
  readonly hint?: string
  readonly choices: readonly (readonly [string, string])[]
}) {
  return (
    <Field label={label} hint={hint}>
      <select name={name}>
        {choices.map(([one, text]) => (
          <option key={one} value={one} selected={one === (value ?? "")}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  )
}

export function CheckField({
  name,
  label,
  checked = false,
}: {
  readonly name: string
  readonly label: string
  readonly checked?: boolean
}) {
  return (
    <label class="check">
      <input name={name} type="checkbox" defaultChecked={checked} />
      <span>{label}</span>
    </label>
  )
}

/** The first hundred are offered; others are typed. */
const OFFERED = 100

function Applications({ id }: { readonly id: string }) {
  const { data } = useResource<List<Application>>("/app", { limit: OFFERED })
  return (
    <datalist id={id}>
      {data?.data.map(({ id: value, name, uid }) => (
        <option key={value} value={uid ?? value}>
          {name}
        </option>
      ))}
    </datalist>
  )
}

export function ApplicationField({
  value,
  required = true,
}: {
  readonly value?: string | null | undefined
  readonly required?: boolean
}) {
  return (
    <Field label="Application" hint="Its id or uid.">
      <input
        name="app"
        list="field-applications"
        defaultValue={value ?? ""}
        required={required}
        spellcheck={false}
      />
      <Applications id="field-applications" />
    </Field>
  )
}

/** The filter `app_id` of a list. */
export function ApplicationFilter({ placeholder = "All applications" }: { readonly placeholder?: string }) {
  const value = filterOf("app_id") ?? ""
  return (
    <label class="filter">
      <span>Application</span>
      <input
        type="search"
        list="filter-applications"
        key={value}
        defaultValue={value}
        placeholder={placeholder}
        spellcheck={false}
        onChange={(event) => setFilters({ app_id: event.currentTarget.value.trim() })}
      />
      <Applications id="filter-applications" />
    </label>
  )
}
