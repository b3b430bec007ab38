/** The attempts of a delivery as a timeline, the newest first. */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import type { List } from "../resource.ts"
import type { Attempt } from "../types.ts"
import { Badge, Button, Time } from "../ui/basics.tsx"
import { Payload } from "../ui/payload.tsx"
import { Answer } from "./delivery-state.tsx"
import { Timing } from "./timing.tsx"
import { causeSentence } from "./words.ts"

interface AttemptsProps {
  readonly appId: string
  readonly endpointId: string
  readonly msgId: string
  /** The newest, of the delivery as it is now. */
  readonly attempts: readonly Attempt[]
  /** Whether there may be older ones. */
  readonly hasOlder: boolean
  /** Shown after the attempts: the time of the next one. */
  readonly next?: ComponentChildren
  /** Shown before the attempts. */
  readonly first?: ComponentChildren
  /** The endpoint's own headers, as they are now. */
  readonly headers?: { readonly [name: string]: string }
}

export function Attempts({ attempts, hasOlder, next, first, headers = {}, ...of }: AttemptsProps) {
  const [older, setOlder] = useState<readonly Attempt[]>([])
  const [isDone, setDone] = useState(!hasOlder)
  const ids = new Set(attempts.map(({ id }) => id))
  const all = [...attempts, ...older.filter(({ id }) => !ids.has(id))]
  const readOlder = async () => {
    const { data, done } = await api.get<List<Attempt>>(pathTo("/app", of.appId, "/attempt/msg", of.msgId), {
      endpoint_id: of.endpointId,
      before: all.at(-1)?.timestamp,
      expanded_statuses: true,
    })
    setOlder([...older, ...data])
    setDone(done)
  }
  return (
    <>
      <ol class="timeline" reversed>
        {next}
        {all.map((attempt, i) => (
          <AttemptItem key={attempt.id} attempt={attempt} headers={headers} isOpen={i === 0} />
        ))}
        {isDone && first}
      </ol>
      {!isDone && <Button onClick={readOlder}>Show older attempts</Button>}
    </>
  )
}

function AttemptItem({
  attempt,
  headers,
  isOpen,
}: {
  readonly attempt: Attempt
  readonly headers: { readonly [name: string]: string }
  readonly isOpen: boolean
}) {
  const { id, timestamp, responseDurationMs, responseStatusCode, error, status, triggerType } = attempt
  // It stays open under the reader's eyes when another attempt follows.
  const [isOpenAtFirst] = useState(isOpen)
  const hasAnswer = responseStatusCode !== 0
  return (
    <li class={status === 0 ? "good" : "bad"} data-attempt={id}>
      <details open={isOpenAtFirst}>
        <summary class="row">
          <Answer attempt={attempt} />
          <Time at={timestamp} />
          <span class="faint">{responseDurationMs} ms</span>
          {triggerType === 1 && <Badge tone="info">by hand</Badge>}
        </summary>
        <div class="attempt stack">
          {error !== null && <p>{causeSentence(error)}</p>}
          <Timing attempt={attempt} />
          {hasAnswer && (
            <section>
              <h3>Response</h3>
              <Payload label="Response body" value={attempt.response} />
            </section>
          )}
          <section>
            <h3>Request</h3>
            <Payload label="Request" value={requestOf(attempt, headers)} />
            <p class="hint">
              The signature is made anew for each attempt and is not kept. The endpoint’s own headers are as
              they are now.
            </p>
          </section>
        </div>
      </details>
    </li>
  )
}

function requestOf({ url, msgId, timestamp }: Attempt, own: { readonly [name: string]: string }): string {
  const seconds = Math.floor(Date.parse(timestamp) / 1000)
  const standard = { "webhook-id": msgId, "webhook-timestamp": seconds, "idempotency-key": msgId }
  const lines = Object.entries({ ...standard, ...own }).map(([name, value]) => `${name}: ${value}`)
  return [`POST ${url}`, ...lines].join("\n")
}
