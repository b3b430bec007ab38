/** `posthorn alerts`: alerts, their rules, silences and channels. */
import { ALERT_STATES } from "../../alerts/alerts.ts"
import { RULE_IDS } from "../../alerts/rules.ts"
import type {
  AlertEvaluationOut,
  AlertOut,
  AlertRuleOut,
  AlertSettingsOut,
  SilenceOut,
} from "../../api/schemas/alert.ts"
import { path } from "../api.ts"
import { action, type Group, PAGE_FLAGS, TABLE_FLAGS } from "../command.ts"
import { choice, text, wholeNumber } from "../flag.ts"
import { showList } from "../lists.ts"
import { parseJson, readSource, SOURCE_FLAGS } from "../source.ts"
import { type Column, shortId, shortTime, time } from "../table.ts"
import { span } from "../time-flags.ts"
import { UsageError } from "../usage-error.ts"
import { CHANNEL_ACTIONS } from "./alert-channels.ts"

const ALERT = { name: "alert", about: "the alert's id" } as const
const RULE = { name: "rule", about: "the rule", choices: RULE_IDS } as const

const COLUMNS: readonly Column<AlertOut>[] = [
  { title: "ID", value: ({ id }) => id, short: shortId },
  { title: "STATE", value: ({ state }) => state },
  { title: "SEVERITY", value: ({ severity }) => severity },
  { title: "RULE", value: ({ rule }) => rule },
  { title: "STARTED", value: ({ startedAt }) => time(startedAt), short: shortTime },
  { title: "ENDED", value: ({ endedAt }) => time(endedAt), short: shortTime },
  { title: "ABOUT", value: ({ name, detail }) => `${name}: ${detail}`, cut: true },
]

const RULES: readonly Column<AlertRuleOut>[] = [
  { title: "RULE", value: ({ id }) => id },
  { title: "ON", value: ({ enabled }) => enabled },
  { title: "SEVERITY", value: ({ severity }) => severity },
  { title: "THRESHOLDS", value: ({ thresholds }) => thresholdsText(thresholds) },
  { title: "CHANNELS", value: ({ channels }) => channels?.join(", ") ?? "all" },
  { title: "CHANGED", value: ({ isChanged }) => isChanged },
]

const SILENCES: readonly Column<SilenceOut>[] = [
  { title: "ID", value: ({ id }) => id, short: shortId },
  { title: "RULE", value: ({ rule }) => rule },
  { title: "SUBJECT", value: ({ subject }) => subject ?? "all", short: shortId },
  { title: "UNTIL", value: ({ until }) => time(until), short: shortTime },
  { title: "BY", value: ({ createdBy }) => createdBy },
  { title: "REASON", value: ({ reason }) => reason, cut: true },
]

const thresholdsText = (thresholds: AlertRuleOut["thresholds"]) =>
  Object.entries(thresholds)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ")

/** Beyond this age, alerts may be missing. */
const LATE_SECONDS = 120

export const command: Group = {
  summary: "alerts: what is wrong now, the rules, silences, and channels",
  actions: {
    list: action({
      summary: "list alerts, the newest first; resolved ones are kept for 7 days",
      flags: {
        ...PAGE_FLAGS,
        state: choice(ALERT_STATES, "only alerts in this state", { field: "state" }),
        rule: choice(RULE_IDS, "only alerts of this rule", { field: "rule" }),
      },
      examples: ["posthorn alerts list", "posthorn alerts list --state firing"],
      absentStore: () => "empty",
      async run(run) {
        const { state, rule } = run.flags
        const none = state === undefined && rule === undefined ? "There are no alerts." : "No alert fits."
        await showList(run, { route: "/alert", query: { state, rule }, columns: COLUMNS, none })
        const { ageSeconds } = await run.api.get<AlertEvaluationOut>("/alert-evaluation")
        if (ageSeconds === null)
          run.out.note("The rules were never evaluated: start posthorn serve or worker.")
        else if (ageSeconds > LATE_SECONDS)
          run.out.note(`The rules were last evaluated ${ageSeconds} s ago: does a process deliver?`)
        return undefined
      },
    }),
    show: action({
      summary: "show an alert",
      args: [ALERT],
      examples: ["posthorn alerts show ALERT_ID"],
      async run({ api, out, args }) {
        out.record(await api.get<AlertOut>(path`/alert/${args.alert}`))
        return undefined
      },
    }),
    ack: action({
      summary: "acknowledge a firing alert: it is not repeated any more, and its end is still notified",
      args: [ALERT],
      examples: ["posthorn alerts ack ALERT_ID"],
      async run({ api, out, args }) {
        const alert = await api.post<AlertOut>(path`/alert/${args.alert}/acknowledge`, undefined)
        out.say(alert, `Alert ${alert.id} is acknowledged.`)
        return undefined
      },
    }),
    silence: action({
      summary: "suppress the notifications of a rule, or of one endpoint or agent, for a time",
      args: [RULE],
      flags: {
        for: span("how long (1h)"),
        endpoint: text("ENDPOINT", "only for this endpoint, by id"),
        agent: text("APP_ID.NAME", "only for this agent"),
        reason: text("TEXT", "why, for your colleagues"),
      },
      examples: [
        'posthorn alerts silence endpoint-failing --endpoint ENDPOINT_ID --for 2h --reason "moving"',
        "posthorn alerts silence dead-letter --for 1d",
      ],
      absentStore: () => "create",
      async run({ api, out, args, flags }) {
        const { for: seconds = 3600, endpoint, agent, reason } = flags
        if (endpoint !== undefined && agent !== undefined)
          throw new UsageError("--endpoint and --agent exclude each other")
        const body = { rule: args.rule, subject: endpoint ?? agent, seconds, reason }
        const made = await api.post<SilenceOut>("/alert-silence", body)
        out.say(
          made,
          `${made.rule} is silenced until ${time(made.until)}; posthorn alerts unsilence ${made.id}`,
        )
        return undefined
      },
    }),
    silences: action({
      summary: "list the silences that have not ended",
      flags: PAGE_FLAGS,
      examples: ["posthorn alerts silences"],
      absentStore: () => "empty",
      run: (run) =>
        showList(run, { route: "/alert-silence", columns: SILENCES, none: "There are no silences." }),
    }),
    unsilence: action({
      summary: "end a silence",
      args: [{ name: "silence", about: "the silence's id" }],
      examples: ["posthorn alerts unsilence SILENCE_ID"],
      async run({ api, out, args }) {
        const done = await api.send("DELETE", path`/alert-silence/${args.silence}`)
        out.say(done, `Silence ${args.silence} is ended.`)
        return undefined
      },
    }),
    rules: action({
      summary: "list the rules and their settings",
      flags: TABLE_FLAGS,
      examples: ["posthorn alerts rules"],
      absentStore: () => "empty",
      async run({ api, out }) {
        const list = await api.get<{ readonly data: readonly AlertRuleOut[] }>("/alert-rule")
        out.table(list, list.data, RULES, "There are no rules.")
        return undefined
      },
    }),
    "put-rule": action({
      summary: "replace the settings of a rule; settings that are left out have their default",
      args: [RULE, { name: "-", about: "reads the settings from standard input", optional: true }],
      flags: SOURCE_FLAGS,
      examples: [
        `posthorn alerts put-rule endpoint-failing --data '{"seconds": 1800, "severity": "critical"}'`,
        `posthorn alerts put-rule dead-letters-age --data '{"enabled": false}'`,
      ],
      absentStore: () => "create",
      async run({ api, out, args, flags }) {
        const body = parseJson(await readSource(flags, args["-"]))
        showRule(out, await api.send("PUT", path`/alert-rule/${args.rule}`, { body }))
        return undefined
      },
    }),
    "reset-rule": action({
      summary: "give a rule its default settings",
      args: [RULE],
      examples: ["posthorn alerts reset-rule endpoint-failing"],
      absentStore: () => "create",
      async run({ api, out, args }) {
        showRule(out, await api.send("DELETE", path`/alert-rule/${args.rule}`))
        return undefined
      },
    }),
    settings: action({
      summary: "show the settings of all notifications, or change those that are given",
      flags: {
        "repeat-hours": wholeNumber("HOURS", "repeats a firing alert that nobody acknowledged", {
          field: "repeatHours",
        }),
        "per-hour": wholeNumber("N", "the most notifications to a channel in an hour", {
          field: "notificationsPerHour",
        }),
      },
      examples: ["posthorn alerts settings", "posthorn alerts settings --repeat-hours 12"],
      absentStore: (flags) => (Object.keys(flags).length === 0 ? "empty" : "create"),
      async run({ api, out, fields }) {
        const isChange = Object.keys(fields).length > 0
        const route = "/alert-settings"
        out.record(
          isChange
            ? await api.send<AlertSettingsOut>("PATCH", route, { body: fields })
            : await api.get<AlertSettingsOut>(route),
        )
        return undefined
      },
    }),
    ...CHANNEL_ACTIONS,
  },
}

function showRule(out: { record(document: unknown, view: object): void }, rule: AlertRuleOut): void {
  const { thresholds, channels, ...fields } = rule
  out.record(rule, { ...fields, ...thresholds, channels: channels ?? "all" })
}
