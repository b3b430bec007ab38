/** Routes that show what the frame does: small ones of each kind, on real resources. */
import { requireCaller } from "../../../src/api/auth.ts"
import type { Routes } from "../../../src/api/context.ts"
import { ApiError } from "../../../src/api/errors.ts"
import { NoContent, Timestamp, Type } from "../../../src/api/schema.ts"
import { ListResponse, Order, PageQuery } from "../../../src/api/schemas/common.ts"

const AppOut = Type.Named(
  "AppOut",
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    createdAt: Timestamp,
    by: Type.Nullable(Type.String()),
  }),
)
const AppIn = Type.Named(
  "AppIn",
  Type.Object({
    name: Type.String({ minLength: 1, maxLength: 256 }),
    uid: Type.Optional(Type.Nullable(Type.String())),
    kind: Type.Optional(Type.Enum(["big", "small"])),
    free: Type.Optional(Type.Record(Type.Unknown())),
  }),
)
const params = Type.Object({ app_id: Type.String({ pattern: "^[a-zA-Z0-9_.-]+$" }) })
const described = (operationId: string) => ({ operationId, tags: ["Probe"], summary: operationId })

export interface ProbeControls {
  /** Runs inside the handler that creates, after it has written. */
  created?: () => Promise<void> | void
  /** Runs in the handler of GET /wait. */
  wait?: () => Promise<void>
}

export function probeRoutes(controls: ProbeControls = {}): Routes {
  return (app, context) => {
    app.post(
      "/app",
      {
        config: { auth: "org" },
        schema: { ...described("probe.create"), body: AppIn, response: { 201: AppOut } },
      },
      async (request, reply) => {
        const { name, uid = null } = request.body
        const made = await context.tenant(request).applications.create({ name, uid })
        await controls.created?.()
        return reply
          .code(201)
          .send({ id: made.id, name, createdAt: made.createdAt, by: request.caller!.keyId })
      },
    )
    app.get(
      "/app",
      {
        config: { auth: "org" },
        schema: {
          ...described("probe.list"),
          querystring: Type.Object({
            ...PageQuery,
            order: Type.Optional(Order),
            event_types: Type.Optional(Type.Array(Type.String())),
            with_content: Type.Optional(Type.Boolean()),
          }),
          response: { 200: ListResponse("ListResponseAny", Type.Unknown()) },
        },
      },
      async (request) => {
        const { limit, iterator, ...rest } = request.query
        const page = { limit: limit!, ...(iterator === undefined ? {} : { cursor: iterator }) }
        const { data, cursor, previous, done } = await context.tenant(request).applications.list(page)
        return {
          data: [{ asked: { limit, ...rest } }, ...data.map(({ name }) => name)],
          iterator: cursor,
          prevIterator: previous,
          done,
        }
      },
    )
    app.get(
      "/app/:app_id",
      { config: { auth: "app" }, schema: { ...described("probe.get"), params, response: { 200: AppOut } } },
      async (request) => {
        const { id, name, createdAt } = await context.tenant(request).applications.get(request.params.app_id)
        return { id, name, createdAt, by: requireCaller(request).keyId }
      },
    )
    app.get(
      "/app/:app_id/secret",
      {
        config: { auth: "app", capability: "ViewEndpointSecret" },
        schema: { ...described("probe.secret"), params, response: { 204: NoContent } },
      },
      async (_request, reply) => reply.code(204).send(),
    )
    app.post(
      "/app/:app_id/change",
      {
        config: { auth: "app", capability: "ManageEndpoint" },
        schema: { ...described("probe.change"), params, response: { 204: NoContent } },
      },
      async (_request, reply) => reply.code(204).send(),
    )
    app.get(
      "/type",
      { config: { auth: "read" }, schema: { ...described("probe.type"), response: { 204: NoContent } } },
      async (_request, reply) => reply.code(204).send(),
    )
    app.get(
      "/fail",
      { config: { auth: "none" }, schema: { ...described("probe.fail"), response: { 204: NoContent } } },
      async () => {
        throw new Error("the password is hunter2")
      },
    )
    app.get(
      "/refuse",
      { config: { auth: "none" }, schema: { ...described("probe.refuse"), response: { 204: NoContent } } },
      async () => {
        throw ApiError.of(400, "invalid_range", "too long")
      },
    )
    app.get(
      "/wait",
      { config: { auth: "none" }, schema: { ...described("probe.wait"), response: { 204: NoContent } } },
      async (_request, reply) => {
        await controls.wait?.()
        return reply.code(204).send()
      },
    )
  }
}
