/** What an endpoint's receiver verifies with. */
import { path } from "../api.ts"
import { action } from "../command.ts"
import { text } from "../flag.ts"
import { span } from "../when.ts"
import { APP, ENDPOINT } from "./shared.ts"

interface Secret {
  readonly key: string
}

export const secret = action({
  summary: "show what the receiver verifies with: whsec_…, or whpk_… of an ed25519 key",
  args: [APP, ENDPOINT],
  examples: ["posthorn endpoints secret acme main"],
  async run({ api, out, args }) {
    const found = await api.get<Secret>(path`/app/${args.app}/endpoint/${args.endpoint}/secret`)
    out.say(found, found.key)
  },
})

export const rotate = action({
  summary: "make a new secret; the old one signs beside it for a day, and the new one is shown",
  args: [APP, ENDPOINT],
  flags: {
    secret: text("SECRET", "whsec_… or whsk_…, instead of one that is made", { field: "key" }),
    grace: span("how long the old one signs too (1d)", { field: "gracePeriodSeconds" }),
  },
  examples: ["posthorn endpoints rotate acme main", "posthorn endpoints rotate acme main --grace 2h"],
  async run({ api, out, args, fields }) {
    const route = path`/app/${args.app}/endpoint/${args.endpoint}/secret`
    await api.post(`${route}/rotate`, fields)
    const found = await api.get<Secret>(route)
    out.say(found, found.key)
  },
})
