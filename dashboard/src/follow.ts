/** Follows a live stream of the API: the tabs of one browser share each stream, since HTTP/1.1 allows six connections to a server. */
import { authHeaders, bearer, sessionEnded } from "./api.ts"
import { gather } from "./gather.ts"
import type { FromTab, ToTab } from "./live-worker.ts"
import workerFile from "./live-worker.ts?sharedworker&url"
import { openStream, type StreamEvent, type StreamState } from "./stream.ts"

export interface Follower {
  /** At most four times a second. */
  onEvents(events: readonly StreamEvent[]): void
  onState(state: StreamState): void
}

// The streams of a page that the browser kept for its back button have ended.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload()
})

/** Returns a function that ends it. */
export function follow(path: string, { onEvents, onState }: Follower): () => void {
  const follower: Follower = {
    onEvents,
    onState(state) {
      if (state.kind === "refused" && state.status === 401) sessionEnded.value = state.text
      onState(state)
    },
  }
  // A bearer token stays in this page.
  const isShared = bearer.value === null && "SharedWorker" in window
  return isShared ? followShared(path, follower) : followAlone(path, follower)
}

function followAlone(path: string, { onEvents, onState }: Follower): () => void {
  const gathered = gather(onEvents)
  const end = openStream({ path, headers: authHeaders(), onEvent: gathered.add, onState })
  return () => {
    end()
    gathered.end()
  }
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string }
}

/** The Content-Security-Policy lets this one script URL through. */
const policy = (window as { readonly trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy("posthorn", {
  createScriptURL(url) {
    if (url !== workerFile) throw new TypeError("Only the live stream's worker is loaded by its URL.")
    return url
  },
})

function followShared(path: string, { onEvents, onState }: Follower): () => void {
  const url = policy?.createScriptURL(workerFile) ?? workerFile
  const worker = new SharedWorker(url, { type: "module", name: "posthorn-live" })
  const tell = (message: FromTab) => worker.port.postMessage(message)
  worker.port.onmessage = ({ data }: MessageEvent<ToTab>) => {
    if (data.kind === "events") onEvents(data.events)
    else onState(data.state)
  }
  tell({ kind: "open", path, headers: authHeaders() })
  const end = () => {
    removeEventListener("pagehide", end)
    tell({ kind: "close" })
    worker.port.close()
  }
  addEventListener("pagehide", end)
  return end
}
