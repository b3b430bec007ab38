/** Schemas of alerts, their rules and silences. */
import { ALERT_STATES } from "../../alerts/alerts.ts"
import { SEVERITIES } from "../../alerts/notification.ts"
import { definitionOf, RULE_IDS } from "../../alerts/rules.ts"
import { type Static, Timestamp, Type } from "../schema.ts"

export const AlertRuleId = Type.Named("AlertRuleId", Type.Enum(RULE_IDS))
export const AlertState = Type.Named(
  "AlertState",
  Type.Enum(ALERT_STATES, {
    description:
      "`pending`: seen once, fires if the next evaluation sees it again. `acknowledged`: firing, not repeated. `silenced`: firing, not notified.",
  }),
)
const Severity = Type.Named("AlertSeverity", Type.Enum(SEVERITIES))
const Subject = Type.Nullable(
  Type.String({
    minLength: 1,
    maxLength: 256,
    description: "An endpoint's id, or an agent as APP_ID.NAME; null: the whole store.",
  }),
)
const KeyId = Type.Nullable(
  Type.String({ description: "The id of the key; null for a login link or a token." }),
)

export const AlertOut = Type.Named(
  "AlertOut",
  Type.Object({
    id: Type.String(),
    rule: AlertRuleId,
    severity: Severity,
    state: AlertState,
    subject: Subject,
    name: Type.String(),
    detail: Type.String({ description: "The reason; of a resolved alert, how it ended." }),
    since: Timestamp,
    startedAt: Timestamp,
    endedAt: Type.Nullable(Timestamp),
    acknowledgedAt: Type.Nullable(Timestamp),
    acknowledgedBy: KeyId,
    silenceId: Type.Nullable(Type.String()),
    channels: Type.Array(Type.String(), {
      description: "The channels that know of the alert and not yet of its end.",
    }),
  }),
)
export type AlertOut = Static<typeof AlertOut>

export const AlertEvaluationOut = Type.Named(
  "AlertEvaluationOut",
  Type.Object({
    evaluatedAt: Type.Nullable(Timestamp),
    ageSeconds: Type.Nullable(
      Type.Integer({ description: "Far more than 15: no process that delivers is running." }),
    ),
  }),
)
export type AlertEvaluationOut = Static<typeof AlertEvaluationOut>

const Channels = Type.Nullable(
  Type.Array(Type.String(), { description: "The names of channels; null: all channels." }),
)

/** All thresholds of all rules: each rule has some of them. */
const thresholds = Object.fromEntries(
  RULE_IDS.flatMap((id) =>
    Object.keys(definitionOf(id).thresholds).map((name) => [
      name,
      Type.Optional(Type.Number({ description: "A threshold." })),
    ]),
  ),
)

/** The library validates the fields of a rule, with its own messages. */
export const AlertRuleIn = Type.Named(
  "AlertRuleIn",
  Type.Shown(
    Type.Object({}, { additionalProperties: true }),
    Type.Object(
      {
        enabled: Type.Optional(Type.Boolean()),
        severity: Type.Optional(Severity),
        channels: Type.Optional(Channels),
        ...thresholds,
      },
      {
        description: "The settings of a rule. Fields that are left out have their default.",
        examples: [{ enabled: true, severity: "critical" }],
      },
    ),
  ),
)

export const AlertRuleOut = Type.Named(
  "AlertRuleOut",
  Type.Object({
    id: AlertRuleId,
    about: Type.String(),
    enabled: Type.Boolean(),
    severity: Severity,
    channels: Channels,
    thresholds: Type.Record(Type.Number()),
    isChanged: Type.Boolean({ description: "False: all its settings are the defaults." }),
  }),
)
export type AlertRuleOut = Static<typeof AlertRuleOut>

const settings = {
  repeatHours: Type.Integer({
    minimum: 1,
    maximum: 720,
    description: "A firing alert that nobody acknowledged is notified again after this time; 4.",
  }),
  notificationsPerHour: Type.Integer({
    minimum: 1,
    maximum: 1000,
    description: "The most notifications to a channel in an hour; 20.",
  }),
}

export const AlertSettingsOut = Type.Named("AlertSettingsOut", Type.Object(settings))
export type AlertSettingsOut = Static<typeof AlertSettingsOut>
export const AlertSettingsPatch = Type.Named(
  "AlertSettingsPatch",
  Type.Object({
    repeatHours: Type.Optional(settings.repeatHours),
    notificationsPerHour: Type.Optional(settings.notificationsPerHour),
  }),
)

export const SilenceIn = Type.Named(
  "SilenceIn",
  Type.Object(
    {
      rule: AlertRuleId,
      subject: Type.Optional(Subject),
      seconds: Type.Integer({ minimum: 1, maximum: 31_536_000, description: "How long." }),
      reason: Type.Optional(Type.String({ maxLength: 1000 })),
    },
    {
      description: "Suppresses notifications of a rule, or of one of its endpoints or agents, for a time.",
      examples: [{ rule: "endpoint-failing", seconds: 7200, reason: "The receiver is being moved" }],
    },
  ),
)

export const SilenceOut = Type.Named(
  "SilenceOut",
  Type.Object({
    id: Type.String(),
    rule: AlertRuleId,
    subject: Subject,
    until: Timestamp,
    reason: Type.String(),
    createdBy: KeyId,
    createdAt: Timestamp,
  }),
)
export type SilenceOut = Static<typeof SilenceOut>
