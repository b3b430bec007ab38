/** Health checks: liveness, and whether the store can be written. */
import { sharedHealth } from "../../shared-health.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { NoContent, Type } from "../schema.ts"
import { HttpErrorOut } from "../schemas/common.ts"

const Part = Type.Named("HealthStatus", Type.Object({ status: Type.Enum(["ok", "error"]) }))
const HealthOut = Type.Named("HealthOut", Type.Object({ database: Part, queue: Part, cache: Part }))

export const healthRoutes: Routes = (app, { posthorn }) => {
  const ask = sharedHealth(posthorn)

  app.get(
    "/health",
    operation("v1.health.get", "Get Health", {
      auth: "none",
      always: true,
      tags: ["Health"],
      description:
        "Whether messages would be accepted now: the store is asked to write. With the status 200, an error of the queue says that the schedule's Redis cannot be used, without which messages are accepted and delivered, or that no endpoint answers this process, since its network is down.",
      response: { 200: HealthOut, 503: Type.Union([HealthOut, HttpErrorOut]) },
    }),
    async (_request, reply) => {
      const { ready, problem } = await ask()
      const database = { status: ready ? "ok" : "error" } as const
      // 200 without Redis or network: the server accepts messages, and a load balancer must keep it.
      const queue = { status: problem === null ? "ok" : "error" } as const
      return reply.code(ready ? 200 : 503).send({ database, queue, cache: { status: "ok" } })
    },
  )

  app.get(
    "/health/ping",
    operation("v1.health.ping", "Ping", {
      auth: "none",
      always: true,
      tags: ["Health"],
      description: "Whether the server answers at all.",
      response: { 204: NoContent },
    }),
    async (_request, reply) => reply.code(204).send(),
  )
}
