/** Notification channels: `/alert-channel`. */
import type { AlertChannelInput } from "../../alerts/channels/channel.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { pageQuery } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import { AlertChannelIn, AlertChannelOut, AlertChannelTestOut } from "../schemas/alert-channel.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import { listOut } from "../views/views.ts"
import { secretRoutes } from "./endpoint-secret.ts"

const tags = ["Alert Channel"]
const params = Type.Object({ name: Type.String({ minLength: 1, maxLength: 64 }) })
const LIST = "/alert-channel"
const ONE = `${LIST}/:name`

export const alertChannelRoutes: Routes = (app, { posthorn: { alertChannels } }) => {
  app.get(
    LIST,
    operation("v1.alert-channel.list", "List the channels that notifications go to, without secrets", {
      auth: "operator",
      tags,
      querystring: Type.Object({ ...PageQuery, order: Type.Optional(Order) }),
      response: { 200: ListResponse("ListResponseAlertChannelOut", AlertChannelOut) },
    }),
    async (request) => listOut(await alertChannels.list(pageQuery(request.query)), (channel) => channel),
  )

  app.get(
    ONE,
    operation("v1.alert-channel.get", "Get a channel, without secrets", {
      auth: "operator",
      tags,
      params,
      response: { 200: AlertChannelOut },
    }),
    async (request) => alertChannels.get(request.params.name),
  )

  app.put(
    ONE,
    operation(
      "v1.alert-channel.put",
      "Create or replace a channel; notifications that wait use it from their next attempt",
      {
        auth: "operator",
        description:
          "All settings are replaced, secrets too. A webhook keeps the secret that it is signed with.",
        tags,
        params,
        body: AlertChannelIn,
        response: { 200: AlertChannelOut },
      },
    ),
    async (request) => alertChannels.put(request.params.name, request.body as AlertChannelInput),
  )

  app.delete(
    ONE,
    operation("v1.alert-channel.delete", "Delete a channel; notifications that wait for it are cancelled", {
      auth: "operator",
      tags,
      params,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      await alertChannels.delete(request.params.name)
      return reply.code(204).send()
    },
  )

  app.post(
    `${ONE}/test`,
    operation(
      "v1.alert-channel.test",
      "Send a test at once; the answer says whether it was delivered, and if not, what to do",
      { auth: "operator", tags, params, response: { 200: AlertChannelTestOut } },
    ),
    async (request) => alertChannels.test(request.params.name),
  )

  secretRoutes(app, {
    path: ONE,
    tags,
    params,
    auth: "operator",
    prefix: "v1.alert-channel",
    secretSummary: "The secret that the receiver of a webhook verifies with",
    answersSecret: () => true,
    find: (request) => alertChannels.signer((request.params as { name: string }).name),
  })
}
