/** Filter flags for deliveries, attempts and messages. */
import { DEAD_REASONS } from "../../core/policy.ts"
import { choice, type Flag, text, texts } from "../flag.ts"
import { moment } from "../time-flags.ts"

export const MESSAGE_FILTERS = {
  type: texts("TYPE", "of this event type; several are any of them", { field: "event_types" }),
  channel: text("CHANNEL", "on this channel", { field: "channel" }),
  tag: text("TAG", "with this tag", { field: "tag" }),
  since: moment("received at or after: a time, or a span such as 2h before now", "before", {
    field: "after",
  }),
  until: moment("received before: a time, or a span before now", "before", { field: "before" }),
} as const

const answer = choice(
  ["0", "100", "200", "300", "400", "500"],
  "the hundreds of the status; 0 for no answer",
  {
    field: "status_code_class",
  },
)

export const DELIVERY_FILTERS = {
  app: text("APP", "of this application, by id or uid", { field: "app_id" }),
  endpoint: text("ENDPOINT", "for this endpoint, by id; by uid together with --app", {
    field: "endpoint_id",
  }),
  message: text("MESSAGE", "of this message, by id; by event id together with --app", { field: "msg_id" }),
  reason: choice(DEAD_REASONS, "given up for this reason", { field: "dead_reason" }),
  cause: text("CAUSE", "whose last error begins so, up to a colon: 'HTTP 500', timeout; none for no error", {
    field: "cause",
  }),
  answer: {
    ...answer,
    read: (given) => Number(answer.read(given)),
  } satisfies Flag<number>,
  ...MESSAGE_FILTERS,
} as const
