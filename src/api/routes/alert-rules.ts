/** The settings of alerts: `/alert-rule`, `/alert-settings`. */
import type { AlertRuleInput } from "../../alerts/rules.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { omitNullish } from "../query-params.ts"
import { Type } from "../schema.ts"
import {
  AlertRuleId,
  AlertRuleIn,
  AlertRuleOut,
  AlertSettingsOut,
  AlertSettingsPatch,
} from "../schemas/alert.ts"
import { alertRuleOut } from "../views/alerts.ts"

const tags = ["Alert Rule"]
const params = Type.Object({ rule_id: AlertRuleId })

export const alertRuleRoutes: Routes = (app, { posthorn }) => {
  const { alerts } = posthorn

  app.get(
    "/alert-rule",
    operation("v1.alert-rule.list", "List the rules and their settings", {
      auth: "operator",
      tags,
      response: {
        200: Type.Named("AlertRuleList", Type.Object({ data: Type.Array(AlertRuleOut) })),
      },
    }),
    async () => ({ data: (await alerts.rules.list()).map(alertRuleOut) }),
  )

  app.get(
    "/alert-rule/:rule_id",
    operation("v1.alert-rule.get", "Get a rule", {
      auth: "operator",
      tags,
      params,
      response: { 200: AlertRuleOut },
    }),
    async (request) => alertRuleOut(await alerts.rules.get(request.params.rule_id)),
  )

  app.put(
    "/alert-rule/:rule_id",
    operation("v1.alert-rule.put", "Replace the settings of a rule", {
      auth: "operator",
      tags,
      params,
      body: AlertRuleIn,
      response: { 200: AlertRuleOut },
    }),
    async (request) =>
      alertRuleOut(await alerts.rules.put(request.params.rule_id, request.body as AlertRuleInput)),
  )

  app.delete(
    "/alert-rule/:rule_id",
    operation("v1.alert-rule.reset", "Give a rule its default settings", {
      auth: "operator",
      tags,
      params,
      response: { 200: AlertRuleOut },
    }),
    async (request) => alertRuleOut(await alerts.rules.reset(request.params.rule_id)),
  )

  app.get(
    "/alert-settings",
    operation("v1.alert-settings.get", "Get the settings of all notifications", {
      auth: "operator",
      tags,
      response: { 200: AlertSettingsOut },
    }),
    async () => alerts.settings(),
  )

  app.patch(
    "/alert-settings",
    operation("v1.alert-settings.patch", "Change the settings of all notifications", {
      auth: "operator",
      tags,
      body: AlertSettingsPatch,
      response: { 200: AlertSettingsOut },
    }),
    async (request) => alerts.putSettings(omitNullish(request.body)),
  )
}
