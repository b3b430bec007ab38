/** The reference at /docs: the OpenAPI document as one page that a browser can search, with an anchor for everything. */
import { byTag, type Content, type Described, type OpenApi } from "./document.ts"
import { type Html, html, prose } from "./html.ts"
import { fieldsOf, notesOf, typeOf } from "./schema.ts"
import { STYLE } from "./style.ts"

const anchor = (text: string) => text.replace(/[^\w.-]+/g, "-")

export function docsPage(document: OpenApi): string {
  const { info, components } = document
  const groups = [...byTag(document)]
  const names = Object.keys(components.schemas)
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${info.title} ${info.version}</title><style>${STYLE}</style></head>
<body><nav><strong><a href="#top">${info.title}</a></strong>
${groups.map(([tag, operations]) => html`<h4><a href="#${anchor(tag)}">${tag}</a></h4><ul>${operations.map(entry)}</ul>`)}
<h4>Schemas</h4><ul>${names.map((name) => html`<li><a href="#${name}">${name}</a></li>`)}</ul></nav>
<main id="top"><h1>${info.title} <small>${info.version}</small></h1><p>${prose(info.description ?? "")}</p>
<p>Send a key with every request: <code>Authorization: Bearer ph_…</code>. The same as data:
<a href="/api/v1/openapi.json">openapi.json</a>.</p>
${groups.map(([tag, operations]) => html`<h2 id="${anchor(tag)}">${tag}</h2>${operations.map(section)}`)}
<h2>Schemas</h2>
${names.map((name) => html`<section id="${name}"><h3>${name}</h3>${about(components.schemas[name]!.description)}${fieldsOf(components.schemas[name]!)}</section>`)}
</main></body></html>`.text
}

function entry({ id, operation }: Described): Html {
  return html`<li><a href="#${anchor(id)}">${operation.summary ?? id}</a></li>`
}

function section({ id, method, path, operation }: Described): Html {
  const {
    summary,
    description,
    deprecated,
    parameters = [],
    requestBody,
    responses = {},
    security,
  } = operation
  return html`<section id="${anchor(id)}"><h3 class="${deprecated ? "deprecated" : ""}">${summary ?? id}</h3>
<pre><span class="method">${method}</span>${path}</pre>${about(description)}
<p><small><code>${id}</code>${security?.length === 0 ? html` needs no key` : ""}</small></p>
${parameters.length === 0 ? "" : html`<h4>Parameters</h4><table>${parameters.map(parameter)}</table>`}
${requestBody === undefined ? "" : html`<h4>Body</h4>${content(requestBody.content)}`}
<h4>Answers</h4>${answers(responses)}</section>`
}

/** What can go wrong is much the same everywhere: it gets a line, not a table. */
function answers(responses: NonNullable<Described["operation"]["responses"]>): Html {
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
}: NonNullable<Described["operation"]["parameters"]>[number]): Html {
  return html`<tr><td><code>${name}</code>${required ? html`<b title="required">*</b>` : ""} <small>${where}</small></td>
<td>${typeOf(schema)}</td><td>${prose(description ?? "")}${notesOf(schema)}</td></tr>`
}

function content(types: Content | undefined): Html {
  const schema = Object.values(types ?? {})[0]?.schema
  if (schema === undefined) return html``
  return schema.$ref === undefined ? fieldsOf(schema) : typeOf(schema)
}

function about(description: unknown): Html {
  return typeof description === "string" ? html`<p>${prose(description)}</p>` : html``
}
