/** `posthorn send`: sends a message. */

import type { MessageOut } from "../../api/schemas/message.ts"
import { countText } from "../../core/wording.ts"
import { path } from "../api.ts"
import { action, type Command } from "../command.ts"
import { choice, on, pairs, text, texts, wholeNumber } from "../flag.ts"
import { parseJson, readSource, SOURCE_FLAGS } from "../source.ts"
import { moment, span } from "../time-flags.ts"
import { UsageError } from "../usage-error.ts"
import { APP } from "./shared.ts"

export const command: Command = action({
  summary: "send a message to every endpoint of an application that wants it",
  about: `The content is JSON, from --data, --file or standard input, and arrives byte for byte as it was given.
When the command ends well the message is on disk; deliveries are made by the process that delivers.`,
  args: [APP, { name: "-", about: "reads the content from standard input", optional: true }],
  flags: {
    type: text("TYPE", "the event type, such as invoice.paid", { field: "eventType" }),
    ...SOURCE_FLAGS,
    "content-type": text("TYPE", "of content that is not JSON"),
    "event-id": text("ID", "your own id for the event, unique in the application", { field: "eventId" }),
    "idempotency-key": text("KEY", "the same key and message again are sent once"),
    channel: texts("CHANNEL", "a channel; several are all of them", { field: "channels" }),
    tag: texts("TAG", "a word to find it by", { field: "tags" }),
    delay: span("wait before the first attempt: 90s, 15m, 2h, 7d", { field: "delaySeconds" }),
    "deliver-at": moment("not before this time", "after", { field: "deliverAt" }),
    priority: choice(["high", "normal", "low"], "goes before or behind others of its endpoint", {
      field: "priority",
    }),
    "max-attempts": wholeNumber("N", "instead of the endpoint's policy", { field: "maxAttempts" }),
    "session-id": text("ID", "comes back in events", { field: "sessionId" }),
    metadata: pairs("KEY=VALUE", "a text of your own", { field: "metadata" }),
    "create-app": on("creates the application, under this uid, if there is none"),
  },
  examples: [
    `posthorn send acme --type invoice.paid --data '{"invoice": 17}'`,
    "posthorn send acme --type invoice.paid --file invoice.json --idempotency-key invoice-17-paid",
    `echo '{"invoice": 18}' | posthorn send acme - --type invoice.paid --delay 15m --channel billing`,
    `posthorn send new-customer --create-app --type customer.created --data '{}'`,
  ],
  absentStore: (flags) => (flags["create-app"] ? "create" : "refuse"),
  async run({ api, out, args, flags, fields }) {
    if (flags.type === undefined)
      throw new UsageError("--type is missing: the event type, such as invoice.paid")
    if (flags.delay !== undefined && flags["deliver-at"] !== undefined)
      throw new UsageError("--delay and --deliver-at say the same; give one of them")
    const source = await readSource(flags, args["-"])
    const contentType = flags["content-type"]
    if (contentType === undefined) parseJson(source)
    const headers = contentType === undefined ? {} : { headers: { "content-type": contentType } }
    const key = flags["idempotency-key"]
    const sent = await api.send<MessageOut>("POST", path`/app/${args.app}/msg`, {
      ...(key === undefined ? {} : { headers: { "idempotency-key": key } }),
      body: {
        ...fields,
        ...(flags["create-app"] ? { application: { name: args.app, uid: args.app } } : {}),
        // As text: JavaScript would round large numbers.
        transformationsParams: { rawPayload: source.text, ...headers },
      },
    })
    out.say(sent, `${sent.id} is accepted, for ${countText(sent.matched ?? 0, "endpoint")}.`)
  },
})
