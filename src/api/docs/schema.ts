/** Schemas as HTML tables. */
import type { JsonSchema } from "../schema.ts"
import { type Html, html, prose } from "./html.ts"

export const nameOf = (reference: string) => reference.split("/").at(-1)!

/** A schema's type in a few words, with links to components. */
export function typeOf(schema: JsonSchema): Html {
  if (typeof schema.$ref === "string") {
    const name = nameOf(schema.$ref)
    return html`<a href="/docs#${name}">${name}</a>`
  }
  if (schema.anyOf !== undefined) return joined(schema.anyOf.map(typeOf))
  if (schema.enum !== undefined)
    return joined(schema.enum.map((value) => html`<code>${JSON.stringify(value) ?? ""}</code>`))
  if (schema.items !== undefined) return html`list of ${typeOf(schema.items)}`
  if (typeof schema.additionalProperties === "object")
    return html`object of ${typeOf(schema.additionalProperties)}`
  const name = [schema.type ?? "any"].flat().join(" or ")
  return html`${typeof schema.format === "string" ? `${name} (${schema.format})` : name}`
}

function joined(parts: readonly Html[]): Html {
  return html`${parts.map((part, i) => (i === 0 ? part : html` or ${part}`))}`
}

const LIMITS: readonly (readonly [string, string])[] = [
  ["minimum", "at least"],
  ["maximum", "at most"],
  ["minLength", "length at least"],
  ["maxLength", "length at most"],
  ["minItems", "items at least"],
  ["maxItems", "items at most"],
  ["pattern", "like"],
  ["default", "default"],
]

/** A schema's description and limits. */
export function notesOf(schema: JsonSchema): Html {
  const limits = LIMITS.filter(([keyword]) => schema[keyword] !== undefined)
  const said = limits.map(
    ([keyword, words]) => html` <small>${words} <code>${shown(schema[keyword])}</code></small>`,
  )
  return html`${prose(typeof schema.description === "string" ? schema.description : "")}${said}`
}

const shown = (value: unknown) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

/** A table of an object's fields; one line for other types. */
export function fieldsOf(schema: JsonSchema): Html {
  if (schema.properties === undefined) return html`<p>${typeOf(schema)} ${notesOf(schema)}</p>`
  const rows = Object.entries(schema.properties).map(
    ([
      name,
      field,
    ]) => html`<tr><td><code>${name}</code>${schema.required?.includes(name) ? html`<b title="required">*</b>` : ""}</td>
<td>${typeOf(field)}</td><td>${notesOf(field)}</td></tr>`,
  )
  return html`<table>${rows}</table>`
}
