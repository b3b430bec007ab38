/** Small parts that every page uses. */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import type { ApiError } from "../api.ts"
import { now } from "../clock.ts"
import { localTime, relative, shortId } from "../format.ts"
import { may, type Right } from "../session.ts"
import { notify } from "./notices.tsx"

export type Tone = "good" | "warn" | "bad" | "idle" | "info"

const SIGNS: { readonly [T in Tone]: string } = { good: "●", warn: "▲", bad: "■", idle: "○", info: "◆" }

/** A state: a sign and a word, so that the colour is never the only difference. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{SIGNS[tone]}</span> {children}
    </span>
  )
}

/** How long ago, or in how long; the exact time on hover. */
export function Time({ at }: { readonly at: string | number | null | undefined }) {
  if (at === null || at === undefined) return <span class="faint">–</span>
  const ms = new Date(at).getTime()
  return (
    <time dateTime={new Date(ms).toISOString()} title={`${localTime(ms)}\n${new Date(ms).toISOString()}`}>
      {relative(ms, now.value)}
    </time>
  )
}

/** An id, short; a click copies all of it. */
export function Id({ id, href }: { readonly id: string; readonly href?: string }) {
  return (
    <span class="id">
      {href === undefined ? (
        <code title={id}>{shortId(id)}</code>
      ) : (
        <a href={href} title={id}>
          <code>{shortId(id)}</code>
        </a>
      )}
      <Copy text={id} label={`Copy ${id}`} />
    </span>
  )
}

export function Copy({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
  const [isCopied, setCopied] = useState(false)
  const run = async () => {
    if (!(await copy(text)))
      return notify("bad", "The browser did not allow copying. Select the text and copy it.")
    setCopied(true)
    setTimeout(() => setCopied(false), 1200)
  }
  return (
    <button type="button" class="copy" aria-label={label} title={label} onClick={run}>
      {isCopied ? (
        "✓"
      ) : (
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
          <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
          <path d="M10.5 3.5v-1h-8v8h1" />
        </svg>
      )}
    </button>
  )
}

/** `navigator.clipboard` exists on https and localhost only. */
async function copy(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard !== undefined) {
      await navigator.clipboard.writeText(text)
      return true
    }
  } catch {
    // The older way may still be allowed.
  }
  const area = document.createElement("textarea")
  area.value = text
  area.className = "offscreen"
  // Outside of a modal dialog nothing can be selected, and the browser would report success all the same.
  const focused = document.activeElement as HTMLElement | null
  const parent = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body
  parent.append(area)
  area.select()
  const isDone = document.execCommand("copy")
  area.remove()
  focused?.focus()
  return isDone
}

interface ButtonProps {
  readonly children: ComponentChildren
  readonly onClick: () => unknown
  readonly kind?: "primary" | "danger" | "plain"
  readonly disabled?: boolean
  readonly title?: string
  /** The capability that its action needs; without it there is no button. `Change` is of operators alone. */
  readonly needs?: Right
}

/** Busy while the promise of its handler is pending; tells its error. */
export function Button({ children, onClick, kind = "plain", disabled = false, title, needs }: ButtonProps) {
  const [isBusy, setBusy] = useState(false)
  if (needs !== undefined && !may(needs)) return null
  const run = async () => {
    if (isBusy) return
    setBusy(true)
    try {
      await onClick()
    } catch (error) {
      notify("bad", (error as Error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button
      type="button"
      class={`button ${kind}`}
      disabled={disabled}
      // A disabled button would lose the focus.
      aria-disabled={isBusy}
      aria-busy={isBusy}
      title={title}
      onClick={run}
    >
      {children}
    </button>
  )
}

/** Nothing here: why, and what to do next. */
export function Empty({
  title,
  children,
}: {
  readonly title: string
  readonly children?: ComponentChildren
}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** Grey lines where text will be. */
export function Skeleton({ lines = 3 }: { readonly lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, i) => (
        <div key={i} />
      ))}
    </div>
  )
}

export function Failure({ error, retry }: { readonly error: ApiError; readonly retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <Badge tone="bad">
        {error.status === 404 ? "Not found" : error.status === 403 ? "Not allowed" : "Error"}
      </Badge>
      <p>{error.message}</p>
      {retry !== undefined && <Button onClick={retry}>Try again</Button>}
    </div>
  )
}

export function Card({
  title,
  aside,
  children,
}: {
  readonly title?: ComponentChildren
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
}) {
  return (
    <section class="card">
      {title !== undefined && (
        <header>
          <h2>{title}</h2>
          {aside !== undefined && <div class="aside">{aside}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

/** A page's title, with its actions. */
export function Heading({
  title,
  above,
  children,
}: {
  readonly title: ComponentChildren
  /** A link to the list that the page belongs to. */
  readonly above?: ComponentChildren
  readonly children?: ComponentChildren
}) {
  return (
    <div class="heading">
      <div>
        {above !== undefined && <p class="above">{above}</p>}
        <h1>{title}</h1>
      </div>
      <div class="actions">{children}</div>
    </div>
  )
}

/** Names and values. */
export function Facts({ children }: { readonly children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>
}
export function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** A number that matters. */
export function Figure({
  label,
  children,
  tone,
  title,
}: {
  readonly label: string
  readonly children: ComponentChildren
  readonly tone?: Tone
  readonly title?: string
}) {
  return (
    <div class={`figure ${tone ?? ""}`} title={title}>
      <div class="value">{children}</div>
      <div class="label">{label}</div>
    </div>
  )
}
