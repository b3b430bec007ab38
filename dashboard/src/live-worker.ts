/** Holds the live streams of all tabs of this browser: one connection for each path. */
import { gather } from "./gather.ts"
import { openStream, type StreamEvent, type StreamState } from "./stream.ts"

export type ToTab =
  | { readonly kind: "events"; readonly events: readonly StreamEvent[] }
  | { readonly kind: "state"; readonly state: StreamState }
export type FromTab =
  | {
      readonly kind: "open"
      readonly path: string
      readonly headers: { readonly [name: string]: string }
    }
  | { readonly kind: "close" }

interface Stream {
  readonly tabs: Set<MessagePort>
  state: StreamState
  end(): void
}

const scope = self as unknown as { onconnect: ((event: MessageEvent) => void) | null }
const streams = new Map<string, Stream>()

scope.onconnect = ({ ports }) => {
  const port = ports[0]!
  let path: string | null = null
  port.onmessage = ({ data }: MessageEvent<FromTab>) => {
    if (path !== null) leave(path, port)
    path = data.kind === "open" ? data.path : null
    if (data.kind === "open") join(data.path, data.headers, port)
    else port.close()
  }
}

function join(path: string, headers: { readonly [name: string]: string }, port: MessagePort): void {
  const known = streams.get(path)
  // After a refusal the next tab tries again: somebody may have signed in.
  if (known !== undefined && known.state.kind !== "refused") {
    known.tabs.add(port)
    return send(port, { kind: "state", state: known.state })
  }
  known?.end()
  streams.set(path, begin(path, headers, new Set([...(known?.tabs ?? []), port])))
}

function begin(path: string, headers: { readonly [name: string]: string }, tabs: Set<MessagePort>): Stream {
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

function leave(path: string, port: MessagePort): void {
  const stream = streams.get(path)
  stream?.tabs.delete(port)
  if (stream === undefined || stream.tabs.size > 0) return
  stream.end()
  streams.delete(path)
}

function send(port: MessagePort, message: ToTab): void {
  port.postMessage(message)
}
