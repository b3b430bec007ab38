/** The actions of `posthorn alerts` that are about channels. */
import type { AlertChannelOut, AlertChannelTestOut } from "../../api/schemas/alert-channel.ts"
import { path } from "../api.ts"
import { action, PAGE_FLAGS, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { showList } from "../lists.ts"
import type { Output } from "../output.ts"
import { parseJson, readSource, SOURCE_FLAGS } from "../source.ts"
import { type Column, time } from "../table.ts"
import { ROTATE_FLAGS, rotateSecret, showSecret } from "./endpoint-secret.ts"

const CHANNEL = { name: "channel", about: "the channel's name" } as const

const routeOf = ({ channel }: { readonly channel: string }) => path`/alert-channel/${channel}`

const COLUMNS: readonly Column<AlertChannelOut>[] = [
  { title: "NAME", value: ({ name }) => name },
  { title: "KIND", value: ({ kind }) => kind },
  { title: "TARGET", value: ({ target }) => target, cut: true, least: 24 },
  { title: "DEAD LETTERS", value: ({ deadLetters }) => deadLetters },
]

function show(out: Output, channel: AlertChannelOut): void {
  const { createdAt, updatedAt, ...rest } = channel
  out.record(channel, { ...rest, createdAt: time(createdAt), updatedAt: time(updatedAt) })
}

export const CHANNEL_ACTIONS = {
  channels: action({
    summary: "list the channels that notifications go to",
    flags: PAGE_FLAGS,
    examples: ["posthorn alerts channels"],
    absentStore: () => "empty",
    run: (run) =>
      showList(run, {
        route: "/alert-channel",
        columns: COLUMNS,
        none: "There are no channels; posthorn alerts put-channel creates one.",
      }),
  }),
  "get-channel": action({
    summary: "show a channel, without its secrets",
    args: [CHANNEL],
    examples: ["posthorn alerts get-channel ops"],
    async run({ api, out, args }) {
      show(out, await api.get(routeOf(args)))
      return undefined
    },
  }),
  "put-channel": action({
    summary: "create or replace a channel: webhook, slack, pagerduty or mail",
    about: "Secrets in --data are visible to all users of the machine; --file and - keep them to yourself.",
    args: [CHANNEL, { name: "-", about: "reads the channel from standard input", optional: true }],
    flags: SOURCE_FLAGS,
    examples: [
      `posthorn alerts put-channel hook --data '{"kind": "webhook", "url": "https://example.com/ops"}'`,
      "posthorn alerts put-channel chat --file slack.json",
    ],
    absentStore: () => "create",
    async run({ api, out, args, flags }) {
      const body = parseJson(await readSource(flags, args["-"]))
      show(out, await api.send("PUT", routeOf(args), { body }))
      return undefined
    },
  }),
  "delete-channel": action({
    summary: "delete a channel; notifications that wait for it are cancelled",
    args: [CHANNEL],
    flags: YES_FLAG,
    examples: ["posthorn alerts delete-channel chat --yes"],
    async run({ api, out, args, flags }) {
      await confirm(flags.yes, async () => {
        const { name, kind, target } = await api.get<AlertChannelOut>(routeOf(args))
        return `Channel ${name} (${kind}, ${target}) would be deleted.`
      })
      out.say(await api.send("DELETE", routeOf(args)), `Channel ${args.channel} is deleted.`)
      return undefined
    },
  }),
  test: action({
    summary: "send a test through a channel; exit code 1 if it was not delivered",
    args: [CHANNEL],
    examples: ["posthorn alerts test ops"],
    async run({ api, out, args }) {
      const result = await api.post<AlertChannelTestOut>(`${routeOf(args)}/test`, undefined)
      const { delivered, detail } = result
      const verdict = delivered ? "works" : "does not work"
      out.say(result, `Channel ${args.channel} ${verdict}. ${detail}`)
      return delivered ? 0 : 1
    },
  }),
  "channel-secret": action({
    summary:
      "show what the receiver of a webhook channel verifies with: whsec_…, or whpk_… of an ed25519 key",
    args: [CHANNEL],
    examples: ["posthorn alerts channel-secret ops"],
    run: ({ api, out, args }) => showSecret(api, out, routeOf(args)),
  }),
  "rotate-channel": action({
    summary: "make a new secret for a webhook channel; the old one signs beside it for a day",
    args: [CHANNEL],
    flags: ROTATE_FLAGS,
    examples: ["posthorn alerts rotate-channel ops --grace 2h"],
    run: ({ api, out, args, fields }) => rotateSecret(api, out, routeOf(args), fields),
  }),
} as const
