/** `posthorn health`: whether the server accepts messages. */
import { sentenceOf } from "../api.ts"
import { action, type Command } from "../command.ts"

interface Health {
  readonly [part: string]: { readonly status: "ok" | "error" }
}

export const command: Command = action({
  summary: "whether messages would be accepted now; the exit code is 0 if so, else 1",
  examples: ["posthorn health", "posthorn health --server http://localhost:8071"],
  async run({ api, out }) {
    const { status, body } = await api.try("GET", "/health")
    const health = body as Health
    if (health === null || health.database === undefined) throw new Error(sentenceOf(status, body, new Map()))
    const parts = Object.entries(health).map(([part, { status: how }]) => [part, how])
    out.record(health, Object.fromEntries(parts))
    return status === 200 ? 0 : 1
  },
})
