/** Whether the server is alive, and whether it can do its work. */
import type { Routes } from "../context.ts"
import { NoContent, Type } from "../schema.ts"
import { HttpErrorOut } from "../shapes.ts"

const Part = Type.Named("HealthStatus", Type.Object({ status: Type.Enum(["ok", "error"]) }))
const HealthOut = Type.Named("HealthOut", Type.Object({ database: Part, queue: Part, cache: Part }))
/** Asking makes the store write: many who ask at once share the answer. */
const SHARED_MS = 250

export const healthRoutes: Routes = (app, { posthorn }) => {
  const { clock } = posthorn.core
  let asked: { readonly ready: Promise<boolean>; readonly untilMs: number } | null = null
  const isReady = () => {
    if (asked === null || clock.now() >= asked.untilMs)
      asked = { ready: posthorn.health().then(({ ready }) => ready), untilMs: clock.now() + SHARED_MS }
    return asked.ready
  }

  app.get(
    "/health",
    {
      config: { auth: "none", always: true },
      schema: {
        operationId: "v1.health.get",
        tags: ["Health"],
        summary: "Get Health",
        description: "Whether messages would be accepted now: the store is asked to write.",
        response: { 200: HealthOut, 503: Type.Union([HealthOut, HttpErrorOut]) },
      },
    },
    async (_request, reply) => {
      const part = { status: (await isReady()) ? "ok" : "error" } as const
      return reply
        .code(part.status === "ok" ? 200 : 503)
        .send({ database: part, queue: part, cache: { status: "ok" } })
    },
  )

  app.get(
    "/health/ping",
    {
      config: { auth: "none", always: true },
      schema: {
        operationId: "v1.health.ping",
        tags: ["Health"],
        summary: "Ping",
        description: "Whether the server answers at all.",
        response: { 204: NoContent },
      },
    },
    async (_request, reply) => reply.code(204).send(),
  )
}
