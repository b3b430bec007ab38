/** Processes that deliver: `/worker`. */
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { Timestamp, Type } from "../schema.ts"

const WorkerOut = Type.Named(
  "WorkerOut",
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    alive: Type.Boolean(),
    aliveUntil: Type.Nullable(Timestamp),
    lanes: Type.Integer({ description: "Endpoints whose lanes it has claimed." }),
    inHand: Type.Integer({ description: "Deliveries that it has fetched and not settled." }),
  }),
)

export const workerRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/worker",
    operation("v1.worker.list", "List the processes that deliver: who is alive, and holds what", {
      auth: "org",
      tags: ["Worker"],
      response: { 200: Type.Named("WorkerList", Type.Object({ data: Type.Array(WorkerOut) })) },
    }),
    async (request) => ({ data: await tenant(request).workers.list() }),
  )
}
