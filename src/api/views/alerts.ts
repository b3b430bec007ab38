/** Translates alerts and their rules into the API's objects. */
import type { AlertRule } from "../../alerts/alert-rules.ts"
import type { Alert } from "../../alerts/alerts.ts"
import type { AlertOut, AlertRuleOut } from "../schemas/alert.ts"

export const alertOut = ({ channels, ...alert }: Alert): AlertOut => ({ ...alert, channels: [...channels] })

export const alertRuleOut = ({ channels, ...rule }: AlertRule): AlertRuleOut => ({
  ...rule,
  channels: channels === null ? null : [...channels],
})
