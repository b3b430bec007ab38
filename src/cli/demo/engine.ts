/**
 * The program that the demo kills: Posthorn as a library in a process of its own. It takes messages over IPC, delivers them, and
 * reports every event. Accepted messages are only in the file.
 */
import { type EventMap, type MessageInput, openPosthorn, TOPIC, type WebhookEvent } from "../../index.ts"
import { LOOPBACK } from "./receiver.ts"

export type ToEngine =
  | { readonly kind: "send"; readonly ref: number; readonly message: MessageInput }
  | { readonly kind: "close" }

export type DemoEvent = WebhookEvent | EventMap["endpoint.breaker.opened"]

export interface Receipt {
  readonly id: string
  readonly matched: number
  readonly duplicate: boolean
}

export type FromEngine =
  | { readonly kind: "ready" }
  | { readonly kind: "event"; readonly event: DemoEvent }
  | { readonly kind: "accepted"; readonly ref: number; readonly receipt: Receipt }
  | { readonly kind: "refused"; readonly ref: number; readonly reason: string }

const [file, app] = process.argv.slice(2)
const tell = (message: FromEngine) => void process.send?.(message)

// Ctrl-C in a terminal reaches this process too; the demo decides when it ends.
process.on("SIGINT", () => {})
process.on("disconnect", () => process.exit())

const posthorn = await openPosthorn({
  store: `sqlite:${file}`,
  pollIntervalMs: 200,
  egress: LOOPBACK,
  logger: "silent",
})
// The parent may have ended before the listener for `disconnect` was added.
if (!process.connected) process.exit()
posthorn.on(TOPIC, (event) => tell({ kind: "event", event }))
for (const to of ["opened", "half_open", "closed"] as const)
  posthorn.on(`endpoint.breaker.${to}`, (event) => tell({ kind: "event", event }))

process.on("message", async (message: ToEngine) => {
  if (message.kind === "close") {
    await posthorn.close()
    process.disconnect()
    return
  }
  const { ref } = message
  try {
    const { id, matched, duplicate } = await posthorn.send(app!, message.message)
    tell({ kind: "accepted", ref, receipt: { id, matched, duplicate } })
  } catch (error) {
    tell({ kind: "refused", ref, reason: (error as Error).message })
  }
})
tell({ kind: "ready" })
