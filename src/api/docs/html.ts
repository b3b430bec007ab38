/** HTML templates that escape every value that is not HTML already. */

export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | number | readonly Html[]

export function html(parts: TemplateStringsArray, ...values: readonly Part[]): Html {
  return new Html(parts.reduce((text, part, i) => text + render(values[i - 1]!) + part))
}

function render(value: Part): string {
  if (value instanceof Html) return value.text
  if (typeof value === "object") return value.map(({ text }) => text).join("")
  return String(value).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}

/** Text with `code` in backticks. */
export function prose(text: string): Html {
  const pieces = text.split(/`([^`]+)`/)
  return html`${pieces.map((piece, i) => (i % 2 === 1 ? html`<code>${piece}</code>` : html`${piece}`))}`
}
