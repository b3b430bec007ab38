/** The search of the top bar: ids, uids and exact names. */
import { useEffect, useState } from "preact/hooks"
import { ApiError, api } from "./api.ts"
import { words } from "./format.ts"
import {
  toAgent,
  toAlert,
  toApplication,
  toDelivery,
  toEndpoint,
  toEventType,
  toMessage,
  toPolicy,
  toSource,
  toTask,
} from "./links.ts"
import { navigate } from "./router.ts"

interface Found {
  readonly kind: string
  readonly id: string
  readonly appId: string | null
  readonly label: string
}

/** Typing pauses for this long before the server is asked. */
const PAUSE_MS = 200

function hrefOf({ kind, id, appId }: Found): string {
  const app = appId ?? ""
  if (kind === "application") return toApplication(id)
  if (kind === "endpoint") return toEndpoint(app, id)
  if (kind === "message") return toMessage(app, id)
  if (kind === "event-type") return toEventType(id)
  if (kind === "source") return toSource(app, id)
  if (kind === "agent") return toAgent(app, id)
  if (kind === "alert") return toAlert(id)
  if (kind === "policy") return toPolicy(id)
  if (kind === "task") return toTask(id)
  return toDelivery(id)
}

export function GlobalSearch() {
  const [text, setText] = useState("")
  const [found, setFound] = useState<readonly Found[] | null>(null)
  const [failure, setFailure] = useState<string | null>(null)
  const wanted = text.trim()
  useEffect(() => {
    setFound(null)
    setFailure(null)
    if (wanted === "") return
    const aborter = new AbortController()
    const timer = setTimeout(() => {
      api.get<{ readonly data: readonly Found[] }>("/search", { q: wanted }, aborter.signal).then(
        ({ data }) => setFound(data),
        (error) => error instanceof ApiError && setFailure(error.message),
      )
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      aborter.abort()
    }
  }, [wanted])
  const close = () => setText("")
  const press = (event: KeyboardEvent) => {
    if (event.key === "Escape") close()
    else if (event.key === "Enter" && found?.[0] !== undefined) {
      navigate(hrefOf(found[0]))
      close()
    }
  }
  return (
    <search class="search" onKeyDown={press}>
      <input
        type="search"
        data-search=""
        aria-label="Find by id, uid or name"
        placeholder="Find an id, uid or name"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {failure !== null && (
        <p class="search-results" role="alert">
          {failure}
        </p>
      )}
      {found !== null && (
        <ul class="search-results" aria-label="Found">
          {found.map((one) => (
            <li key={`${one.kind} ${one.id}`}>
              <a href={hrefOf(one)} onClick={close}>
                <span class="faint">{words(one.kind)}</span> {one.label}
              </a>
            </li>
          ))}
          {found.length === 0 && (
            <li>
              <span>Nothing has exactly this id, uid or name.</span>
            </li>
          )}
        </ul>
      )}
    </search>
  )
}
