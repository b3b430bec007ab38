/** Alerts: `/alert`, `/alert-evaluation`, `/alert-silence`. */
import type { Alerts } from "../../alerts/alerts.ts"
import type { Silence } from "../../alerts/silences.ts"
import { requireCaller } from "../auth.ts"
import type { Api, Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { omitNullish, pageQuery } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import {
  AlertEvaluationOut,
  AlertOut,
  AlertRuleId,
  AlertState,
  SilenceIn,
  SilenceOut,
  type SilenceOut as SilenceShown,
} from "../schemas/alert.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import { alertOut } from "../views/alerts.ts"
import { listOut } from "../views/views.ts"

const tags = ["Alert"]
const Id = Type.String({ minLength: 1, maxLength: 256 })
const silenceOut = (silence: Silence): SilenceShown => silence

export const alertRoutes: Routes = (app, { posthorn }) => {
  const { alerts } = posthorn

  app.get(
    "/alert",
    operation("v1.alert.list", "List alerts, the newest first; resolved alerts are kept for 7 days", {
      auth: "operator",
      tags,
      querystring: Type.Object({
        ...PageQuery,
        order: Type.Optional(Order),
        state: Type.Optional(AlertState),
        rule: Type.Optional(AlertRuleId),
      }),
      response: { 200: ListResponse("ListResponseAlertOut", AlertOut) },
    }),
    async (request) => {
      const { state, rule } = request.query
      return listOut(
        await alerts.list({ ...pageQuery(request.query), ...omitNullish({ state, rule }) }),
        alertOut,
      )
    },
  )

  app.get(
    "/alert/:alert_id",
    operation("v1.alert.get", "Get an alert", {
      auth: "operator",
      tags,
      params: Type.Object({ alert_id: Id }),
      response: { 200: AlertOut },
    }),
    async (request) => alertOut(await alerts.get(request.params.alert_id)),
  )

  app.post(
    "/alert/:alert_id/acknowledge",
    operation("v1.alert.acknowledge", "Acknowledge a firing alert: it is not repeated any more", {
      auth: "operator",
      tags,
      params: Type.Object({ alert_id: Id }),
      response: { 200: AlertOut },
    }),
    async (request) => {
      const by = requireCaller(request).keyId
      return alertOut(await alerts.acknowledge(request.params.alert_id, { by }))
    },
  )

  app.get(
    "/alert-evaluation",
    operation("v1.alert-evaluation.get", "When the rules were last evaluated", {
      auth: "operator",
      tags,
      response: { 200: AlertEvaluationOut },
    }),
    async () => alerts.evaluation(),
  )

  silenceRoutes(app, alerts, () => posthorn.context.clock.now())
}

function silenceRoutes(app: Api, alerts: Alerts, now: () => number): void {
  app.get(
    "/alert-silence",
    operation("v1.alert-silence.list", "List the silences that have not ended, the newest first", {
      auth: "operator",
      tags,
      querystring: Type.Object({ ...PageQuery, order: Type.Optional(Order) }),
      response: { 200: ListResponse("ListResponseSilenceOut", SilenceOut) },
    }),
    async (request) => listOut(await alerts.silences.list(pageQuery(request.query)), silenceOut),
  )

  app.post(
    "/alert-silence",
    operation("v1.alert-silence.create", "Suppress the notifications of a rule for a time", {
      auth: "operator",
      tags,
      body: SilenceIn,
      response: { 201: SilenceOut },
    }),
    async (request, reply) => {
      const { seconds, ...input } = request.body
      const until = now() + seconds * 1000
      const made = await alerts.silences.create({ ...input, until }, { by: requireCaller(request).keyId })
      return reply.code(201).send(made)
    },
  )

  app.delete(
    "/alert-silence/:silence_id",
    operation("v1.alert-silence.delete", "End a silence", {
      auth: "operator",
      tags,
      params: Type.Object({ silence_id: Id }),
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      await alerts.silences.delete(request.params.silence_id)
      return reply.code(204).send()
    },
  )
}
