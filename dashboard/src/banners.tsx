/** Banners about this page's connection to the server, and whether it is tried again by itself. */
import { reachability, sessionEnded } from "./api.ts"
import { streamState } from "./live.ts"
import { refreshNow } from "./refresh.ts"
import { session } from "./session.ts"
import { Button } from "./ui/basics.tsx"

export function Banners({ signInAgain }: { readonly signInAgain: () => unknown }) {
  if (session.value.kind !== "signed-in") return null
  if (sessionEnded.value !== null)
    return (
      <div class="banner bad" role="alert">
        <span>Your session has ended: {sessionEnded.value}. What you see is no longer updated.</span>
        <Button onClick={signInAgain}>Sign in again</Button>
      </div>
    )
  if (reachability.value === "unreachable")
    return (
      <div class="banner bad" role="alert">
        <span>
          The server cannot be reached. What you see is the last that was read; this page goes on when the
          server answers.
        </span>
        <Button onClick={refreshNow}>Try now</Button>
      </div>
    )
  const state = streamState.value
  if (state.kind === "interrupted")
    return (
      <div class="banner warn" role="status">
        The live stream is interrupted. It connects again by itself; until then this page reads every 30
        seconds.
      </div>
    )
  if (state.kind === "refused" && state.status !== 401)
    return (
      <div class="banner warn" role="status">
        Live updates are off: {state.text}. This page reads every 30 seconds.
      </div>
    )
  return null
}
