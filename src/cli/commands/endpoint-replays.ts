/** Sends an example, dead letters or missing messages to an endpoint. */

import type { Static } from "../../api/schema.ts"
import type { EndpointOut, EndpointStatsOut } from "../../api/schemas/endpoint.ts"
import type { MessageOut } from "../../api/schemas/message.ts"
import { countText } from "../../core/wording.ts"
import { type Api, path } from "../api.ts"
import { type Action, action, WAIT_FLAG, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { text, wholeNumber } from "../flag.ts"
import type { List } from "../lists.ts"
import { moment } from "../time-flags.ts"
import { UsageError } from "../usage-error.ts"
import { followTask, type StartedTask } from "../wait-for-task.ts"
import { APP, ENDPOINT } from "./shared.ts"

interface Window {
  readonly since?: string
  readonly until?: string
}

interface Target {
  readonly app: string
  readonly endpoint: string
}

export const test = action({
  summary: "send an example of an event type to this endpoint alone",
  args: [APP, ENDPOINT],
  flags: {
    type: text("TYPE", "an event type that has an example; a ping without one", { field: "eventType" }),
    example: wholeNumber("N", "which of its examples, from 0", { field: "exampleIndex" }),
  },
  examples: ["posthorn endpoints test acme main", "posthorn endpoints test acme main --type invoice.paid"],
  async run({ api, out, args, fields }) {
    const route = path`/app/${args.app}/endpoint/${args.endpoint}/send-example`
    const sent = await api.post<MessageOut>(route, { eventType: "svix.ping", ...fields })
    out.say(sent, `${sent.id} is accepted: posthorn messages get ${args.app} ${sent.id} shows how it goes.`)
  },
})

interface Preview {
  readonly count: number
  readonly text: string
}

/** A replay of the messages in a time window, as a task. */
function replay(
  verb: "recover" | "replay-missing",
  about: { readonly summary: string; readonly since: string },
  preview: (api: Api, target: Target, window: Window) => Promise<Preview>,
): Action {
  return action({
    summary: about.summary,
    args: [APP, ENDPOINT],
    flags: {
      since: moment(`received at or after: a time, or a span ${about.since}`, "before", { field: "since" }),
      until: moment("received before: a time, or a span before now", "before", { field: "until" }),
      ...YES_FLAG,
      ...WAIT_FLAG,
    },
    examples: [
      `posthorn endpoints ${verb} acme main --since 2h --yes`,
      `posthorn endpoints ${verb} acme main --since 3d --until 1d --yes --no-wait`,
    ],
    async run({ api, out, args, flags, fields }) {
      if (flags.since === undefined) throw new UsageError("--since is missing: a time, or a span such as 2h")
      if (!flags.yes) {
        const { count, text } = await preview(api, args, fields)
        if (count === 0) {
          out.say({ count }, "There is nothing to send again.")
          return 0
        }
        await confirm(false, async () => text)
      }
      const route = path`/app/${args.app}/endpoint/${args.endpoint}/${verb}`
      return followTask(api, out, await api.post<StartedTask>(route, fields), flags)
    },
  })
}

export const recover = replay(
  "recover",
  {
    summary: "send what was given up in up to 14 days again",
    since: "such as 2h before now, 14 days at most",
  },
  async (api, { app, endpoint }, window) => {
    const { fail } = await api.get<Static<typeof EndpointStatsOut>>(
      path`/app/${app}/endpoint/${endpoint}/stats`,
      { ...window },
    )
    const many = countText(fail, "delivery", "deliveries")
    return { count: fail, text: `${many} given up ${span(window)} would be sent again.` }
  },
)

export const replayMissing = replay(
  "replay-missing",
  {
    summary: "send the messages that the endpoint would have got and has not",
    since: "such as 2h before now",
  },
  async (api, { app, endpoint }, window) => {
    const { since, until } = window
    const { url } = await api.get<EndpointOut>(path`/app/${app}/endpoint/${endpoint}`)
    const query = { after: since, before: until, limit: 250, with_content: false }
    const { data, done } = await api.get<List<unknown>>(path`/app/${app}/msg`, query)
    const many = `${done ? "" : "more than "}${countText(data.length, "message")}`
    const text = `Of ${many} ${span(window)}, those that ${url} has not got would be sent to it.`
    return { count: data.length, text }
  },
)

function span({ since, until }: Window): string {
  return `since ${since}${until === undefined ? "" : ` and before ${until}`}`
}
