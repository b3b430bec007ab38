/** The reference page at /docs: the OpenAPI document, or the parts that a search finds. It has no script. */
import { PREFIX } from "../context.ts"
import type { JsonSchema } from "../schema.ts"
import { byTag, type Content, type DescribedOperation, LONGEST_SEARCH, type OpenApi } from "./document.ts"
import { exampleAnswer, exampleRequest } from "./example.ts"
import { type Html, html, prose } from "./html.ts"
import { fieldsOf, nameOf, notesOf, typeOf } from "./schema.ts"
import { STYLE } from "./style.ts"

const anchor = (text: string) => text.replace(/[^\w.-]+/g, "-")

/** An operation or a schema. */
interface Item {
  readonly entry: Html
  readonly section: Html
  /** In lower case, for the search. */
  readonly text: string
}

interface Group {
  readonly title: string
  readonly items: readonly Item[]
}

/** Renders all sections once; the result renders the page for a search. */
export function docsPage(document: OpenApi): (words: string) => string {
  const { schemas } = document.components
  const calls = [...byTag(document)].map(
    ([title, group]): Group => ({ title, items: group.map((one) => callItem(title, one, document)) }),
  )
  const named = Object.entries(schemas).map(([name, schema]) => schemaItem(name, schema))
  const groups = [...calls, { title: "Schemas", items: named }]
  return (words) => {
    const wanted = words.toLowerCase().split(/\s+/)
    const isFound = ({ text }: Item) => wanted.every((word) => text.includes(word))
    const found = groups.map(({ title, items }) => ({ title, items: items.filter(isFound) }))
    return render(document, words, words === "" ? groups : found.filter(({ items }) => items.length > 0))
  }
}

function render({ info }: OpenApi, words: string, groups: readonly Group[]): string {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${info.title} ${info.version}</title><style>${STYLE}</style></head>
<body><nav><strong><a href="#top">${info.title}</a></strong>
<form action="/docs" role="search"><input type="search" name="q" value="${words}" maxlength="${LONGEST_SEARCH}"
 placeholder="Search paths and words" aria-label="Search paths and words"><button>Search</button></form>
${words === "" ? "" : html`<p><a href="/docs">Show everything</a></p>`}
${groups.map(({ title, items }) => html`<h4><a href="#${anchor(title)}">${title}</a></h4><ul>${items.map(({ entry }) => entry)}</ul>`)}</nav>
<main id="top"><h1>${info.title} <small>${info.version}</small></h1><p>${prose(info.description ?? "")}</p>
<p>Send a key with every request: <code>Authorization: Bearer ph_…</code>. The same as data:
<a href="/api/v1/openapi.json">openapi.json</a>.</p>
${groups.length === 0 ? html`<p>Nothing was found for <strong>${words}</strong>.</p>` : ""}
${groups.map(({ title, items }) => html`<h2 id="${anchor(title)}">${title}</h2>${items.map(({ section }) => section)}`)}
</main></body></html>`.text
}

function callItem(tag: string, call: DescribedOperation, document: OpenApi): Item {
  const { id, method, path, operation } = call
  const { summary = id, description = "", parameters = [], requestBody } = operation
  const body = schemaOf(requestBody?.content)
  const fields = typeof body?.$ref === "string" ? document.components.schemas[nameOf(body.$ref)] : body
  const names = [...parameters.map(({ name }) => name), ...Object.keys(fields?.properties ?? {})]
  return {
    entry: html`<li><a href="#${anchor(id)}" title="${summary}"><span class="method">${method}</span>${path.replace(PREFIX, "")}</a></li>`,
    section: callSection(call, document),
    text: [tag, method, path, id, summary, description, ...names].join(" ").toLowerCase(),
  }
}

function schemaItem(name: string, schema: JsonSchema): Item {
  const { description, properties = {} } = schema
  return {
    entry: html`<li><a href="#${name}">${name}</a></li>`,
    section: html`<section id="${name}"><h3>${name}</h3>${about(description)}${fieldsOf(schema)}</section>`,
    text: [name, description ?? "", ...Object.keys(properties)].join(" ").toLowerCase(),
  }
}

function callSection(call: DescribedOperation, document: OpenApi): Html {
  const { id, method, path, operation } = call
  const {
    summary,
    description,
    deprecated,
    parameters = [],
    requestBody,
    responses = {},
    security,
  } = operation
  return html`<section class="call" id="${anchor(id)}"><h3 class="${deprecated ? "deprecated" : ""}">${summary ?? id}</h3>
<pre><span class="method">${method}</span>${path}</pre>${about(description)}
<p><small><code>${id}</code>${security?.length === 0 ? html` needs no key` : ""}</small></p>
${parameters.length === 0 ? "" : html`<h4>Parameters</h4><table>${parameters.map(parameter)}</table>`}
${requestBody === undefined ? "" : html`<h4>Body</h4>${content(requestBody.content)}`}
<h4>Answers</h4>${answers(responses)}<h4>Example</h4>${example(call, document)}</section>`
}

function example(call: DescribedOperation, document: OpenApi): Html {
  const { path, body } = exampleRequest(call, document)
  const server = document.servers?.[0]?.url ?? "http://localhost:8071"
  const json = body === undefined ? "" : JSON.stringify(body, null, 2).replaceAll("'", "\\u0027")
  const lines = [
    `curl ${call.method === "GET" ? "" : `-X ${call.method} `}${server}${path}`,
    '-H "Authorization: Bearer $KEY"',
    ...(body === undefined ? [] : ['-H "Content-Type: application/json"', `-d '${json}'`]),
  ]
  const { status, body: answer } = exampleAnswer(call, document)
  return html`<pre>${lines.join(" \\\n  ")}</pre>
<pre>${status}${answer === undefined ? "" : `\n${JSON.stringify(answer, null, 2)}`}</pre>`
}

/** Errors are nearly the same for all operations: one line instead of a table. */
function answers(responses: NonNullable<DescribedOperation["operation"]["responses"]>): Html {
  const all = Object.entries(responses)
  const good = all.filter(([status]) => status < "400")
  const rows = good.map(
    ([status, { content: types, description }]) =>
      html`<tr><td><code>${status}</code> ${description ?? ""}</td><td>${content(types)}</td></tr>`,
  )
  const bad = all.filter(([status]) => status >= "400")
  const errors = bad.map(
    ([status, { description }]) => html`<span title="${description ?? ""}"><code>${status}</code></span> `,
  )
  return html`<table>${rows}</table><p><small>Errors: ${errors}</small></p>`
}

function parameter({
  name,
  in: where,
  required,
  description,
  schema = {},
}: NonNullable<DescribedOperation["operation"]["parameters"]>[number]): Html {
  return html`<tr><td><code>${name}</code>${required ? html`<b title="required">*</b>` : ""} <small>${where}</small></td>
<td>${typeOf(schema)}</td><td>${prose(description ?? "")}${notesOf(schema)}</td></tr>`
}

function content(types: Content | undefined): Html {
  const schema = schemaOf(types)
  if (schema === undefined) return html``
  return schema.$ref === undefined ? fieldsOf(schema) : typeOf(schema)
}

const schemaOf = (types: Content | undefined) => Object.values(types ?? {})[0]?.schema

function about(description: unknown): Html {
  return typeof description === "string" ? html`<p>${prose(description)}</p>` : html``
}
