/** Holds the live streams of all tabs of this browser: one connection for each path and session. */
import { gather } from "./gather.ts"
import { openStream, type StreamEvent, type StreamState } from "./stream.ts"

export type ToTab =
  | { readonly kind: "events"; readonly events: readonly StreamEvent[] }
  | { readonly kind: "state"; readonly state: StreamState }
export type FromTab = Opening | { readonly kind: "close" }

interface Opening {
  readonly kind: "open"
  readonly path: string
  /** They name the session: a browser may have the dashboard and a portal open. */
  readonly headers: { readonly [name: string]: string }
}

interface Stream {
  readonly tabs: Set<MessagePort>
  state: StreamState
  end(): void
}

const scope = self as unknown as { onconnect: ((event: MessageEvent) => void) | null }
/** By path and headers. */
const streams = new Map<string, Stream>()

scope.onconnect = ({ ports }) => {
  const port = ports[0]!
  let joined: string | null = null
  port.onmessage = ({ data }: MessageEvent<FromTab>) => {
    if (joined !== null) leave(joined, port)
    joined = data.kind === "open" ? join(data, port) : null
    if (data.kind === "close") port.close()
  }
}

/** Returns the key of the stream. */
function join({ path, headers }: Opening, port: MessagePort): string {
  const key = JSON.stringify([path, headers])
  const known = streams.get(key)
  // After a refusal the next tab tries again: the user may have signed in since.
  if (known !== undefined && known.state.kind !== "refused") {
    known.tabs.add(port)
    send(port, { kind: "state", state: known.state })
  } else {
    known?.end()
    streams.set(key, begin(path, headers, new Set([...(known?.tabs ?? []), port])))
  }
  return key
}

function begin(path: string, headers: Opening["headers"], tabs: Set<MessagePort>): Stream {
  const toAll = (message: ToTab) => {
    for (const port of tabs) send(port, message)
  }
  const gathered = gather<StreamEvent>((events) => toAll({ kind: "events", events }))
  const stream: Stream = { tabs, state: { kind: "connecting" }, end: () => {} }
  const close = openStream({
    path,
    headers,
    onEvent: gathered.add,
    onState(state) {
      stream.state = state
      toAll({ kind: "state", state })
    },
  })
  stream.end = () => {
    close()
    gathered.end()
  }
  return stream
}

function leave(key: string, port: MessagePort): void {
  const stream = streams.get(key)
  stream?.tabs.delete(port)
  if (stream === undefined || stream.tabs.size > 0) return
  stream.end()
  streams.delete(key)
}

function send(port: MessagePort, message: ToTab): void {
  port.postMessage(message)
}
