/** API keys: `/key`. */
import { hasCode, invalid } from "../../core/errors.ts"
import type { Key, KeyInput } from "../../resources/keys.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { ownerQuery, pageQuery, toDate } from "../query-params.ts"
import { NoContent, pick, Type } from "../schema.ts"
import { HttpErrorOut, ListResponse, Order, OwnerQuery, PageQuery } from "../schemas/common.ts"
import { KeyIn, KeyOut, NewKeyOut } from "../schemas/key.ts"
import { listOut } from "../views/views.ts"

const tags = ["Key"]
const params = Type.Object({
  key_id: Type.String({ minLength: 1, maxLength: 64, description: "The public part of the token." }),
})

export const keyRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/key",
    operation("v1.key.list", "List keys, also those that were revoked or expired in the last 30 days", {
      auth: "org",
      tags,
      querystring: Type.Object({ ...PageQuery, order: Type.Optional(Order), ...OwnerQuery }),
      response: { 200: ListResponse("ListResponseKeyOut", KeyOut), 404: HttpErrorOut },
    }),
    async (request) => {
      const query = { ...pageQuery(request.query), ...ownerQuery(request.query) }
      return listOut(await tenant(request).keys.list(query), keyOut)
    },
  )

  app.post(
    "/key",
    operation("v1.key.create", "Create a key; its token is in this answer and nowhere else", {
      auth: "org",
      tags,
      body: KeyIn,
      response: { 201: NewKeyOut },
    }),
    async (request, reply) => {
      const { expiresAt, ...input } = request.body
      try {
        const made = await tenant(request).keys.create({
          ...(input as KeyInput),
          expiresAt: toDate(expiresAt) ?? null,
        })
        return reply.code(201).send({ ...keyOut(made), token: made.token })
      } catch (error) {
        if (!hasCode(error, "not_found")) throw error
        throw invalid("appId", `names nobody: ${error.message}`)
      }
    },
  )

  app.get(
    "/key/:key_id",
    operation("v1.key.get", "Get a key", { auth: "org", tags, params, response: { 200: KeyOut } }),
    async (request) => keyOut(await tenant(request).keys.get(request.params.key_id)),
  )

  app.delete(
    "/key/:key_id",
    operation("v1.key.revoke", "Revoke a key, at once unless told", {
      auth: "org",
      tags,
      params,
      querystring: Type.Object({
        inSeconds: Type.Optional(
          Type.Integer({ minimum: 0, maximum: 31_536_000, description: "Good for so long yet." }),
        ),
      }),
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      await tenant(request).keys.revoke(request.params.key_id, { inSeconds: request.query.inSeconds ?? 0 })
      return reply.code(204).send()
    },
  )
}

const KEY_FIELDS = Object.keys(KeyOut.properties) as (keyof KeyOut)[]

function keyOut(key: Key): KeyOut {
  return pick(key as Key & KeyOut, KEY_FIELDS)
}
