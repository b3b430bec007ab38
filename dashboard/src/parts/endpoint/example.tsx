/** Sends an example to an endpoint, and shows its response. */
import { useEffect, useState } from "preact/hooks"
import { api, parseExactly, pathTo } from "../../api.ts"
import { toDelivery } from "../../links.ts"
import { type List, useResource } from "../../resource.ts"
import type { Attempt, EventType, Message, MessageEndpoint } from "../../types.ts"
import { Button, Card } from "../../ui/basics.tsx"
import { Field, FormDialog } from "../../ui/dialog.tsx"
import { Payload } from "../../ui/payload.tsx"
import { Answer } from "../delivery-state.tsx"
import { causeSentence, WAITS } from "../words.ts"
import { type OfEndpoint, pathOf } from "./context.ts"

const PING = "svix.ping"
const OFFERED = 100

interface SendExampleProps {
  readonly of: OfEndpoint
  readonly onSent: (messageId: string) => void
  readonly onClose: () => void
}

export function SendExample({ of, onSent, onClose }: SendExampleProps) {
  const types = useResource<List<EventType>>("/event-type", { limit: OFFERED })
  const send = async (values: FormData) => {
    const payload = String(values.get("payload")).trim()
    const { id } = await api.post<Message>(pathOf(of, "/send-example"), {
      eventType: String(values.get("eventType")).trim(),
      ...(payload === "" ? {} : { payload: objectIn(payload) }),
    })
    onSent(id)
  }
  return (
    <FormDialog title="Send an example" submit="Send" onSubmit={send} onClose={onClose}>
      <Field label="Event type" hint={`${PING} is a ping, which needs no event type.`}>
        <input
          name="eventType"
          list="example-event-types"
          required
          defaultValue={PING}
          spellcheck={false}
          autocomplete="off"
        />
        <datalist id="example-event-types">
          {types.data?.data.map(({ name }) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </Field>
      <Field label="Payload" hint="A JSON object. Empty: the example in the schema of the event type.">
        <textarea name="payload" rows={6} spellcheck={false} />
      </Field>
    </FormDialog>
  )
}

function objectIn(text: string): unknown {
  try {
    return parseExactly(text)
  } catch (error) {
    throw new Error(`The payload is not valid JSON: ${(error as Error).message}.`)
  }
}

const PAUSE_MS = 500
/** An endpoint that is not tried by then waits for something else. */
const LONGEST_MS = 60_000

interface Progress {
  readonly attempt: Attempt | null
  readonly target: MessageEndpoint | null
  readonly isGivenUp: boolean
}

interface ExampleAnswerProps {
  readonly of: OfEndpoint
  readonly messageId: string
  readonly onClose: () => void
}

/** Asks for the first attempt until it has ended. */
export function ExampleAnswer({ of, messageId, onClose }: ExampleAnswerProps) {
  const [progress, setProgress] = useState<Progress>({ attempt: null, target: null, isGivenUp: false })
  useEffect(() => {
    const startedAt = Date.now()
    let timer: ReturnType<typeof setTimeout>
    let isEnded = false
    const look = async () => {
      const found = await read(of, messageId).catch(() => null)
      if (isEnded) return
      const isGivenUp = Date.now() - startedAt > LONGEST_MS
      setProgress((before) => ({ ...before, ...found, isGivenUp }))
      if (found?.attempt == null && !isGivenUp) timer = setTimeout(look, PAUSE_MS)
    }
    void look()
    return () => {
      isEnded = true
      clearTimeout(timer)
    }
  }, [messageId])
  const { attempt, target, isGivenUp } = progress
  return (
    <Card title="The example" aside={<Button onClick={onClose}>Close</Button>}>
      <div aria-live="polite">
        {attempt !== null ? (
          <AnswerOf attempt={attempt} />
        ) : (
          <p>
            {isGivenUp ? "It is still not sent." : "It is on its way."}
            {target?.waitReason !== undefined && ` It waits because ${WAITS[target.waitReason].because}.`}
          </p>
        )}
      </div>
      {target !== null && (
        <p>
          <a href={toDelivery(target.deliveryId)}>Its delivery</a> has all of its attempts.
        </p>
      )}
    </Card>
  )
}

async function read({ appId, endpoint }: OfEndpoint, messageId: string) {
  const [attempts, targets] = await Promise.all([
    api.get<List<Attempt>>(pathTo("/app", appId, "/attempt/msg", messageId), { endpoint_id: endpoint.id }),
    api.get<List<MessageEndpoint>>(pathTo("/app", appId, "/msg", messageId, "/endpoint")),
  ])
  return { attempt: attempts.data.at(-1) ?? null, target: targets.data[0] ?? null }
}

function AnswerOf({ attempt }: { readonly attempt: Attempt }) {
  const { status, error, responseDurationMs, responseStatusCode, response } = attempt
  return (
    <div class="stack">
      <p>
        <Answer attempt={attempt} /> {status === 0 ? "The endpoint took it" : "The endpoint did not take it"}{" "}
        in {responseDurationMs} ms.
        {error !== null && ` ${causeSentence(error)}`}
      </p>
      {responseStatusCode !== 0 && <Payload label="Response body" value={response} />}
    </div>
  )
}
