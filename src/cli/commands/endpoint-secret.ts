/** Shows and rotates an endpoint's secret. */
import { type Api, path } from "../api.ts"
import { action } from "../command.ts"
import { text } from "../flag.ts"
import type { Output } from "../output.ts"
import { span } from "../time-flags.ts"
import { APP, ENDPOINT } from "./shared.ts"

interface Secret {
  readonly key: string
}

export const ROTATE_FLAGS = {
  secret: text("SECRET", "whsec_… or whsk_…, instead of one that is made", { field: "key" }),
  grace: span("how long the old one signs too (1d)", { field: "gracePeriodSeconds" }),
} as const

/** `route` is that of the endpoint. */
export async function showSecret(api: Api, out: Output, route: string): Promise<undefined> {
  const found = await api.get<Secret>(`${route}/secret`)
  out.say(found, found.key)
}

export async function rotateSecret(api: Api, out: Output, route: string, fields: object): Promise<undefined> {
  await api.post(`${route}/secret/rotate`, fields)
  await showSecret(api, out, route)
}

export const secret = action({
  summary: "show what the receiver verifies with: whsec_…, or whpk_… of an ed25519 key",
  args: [APP, ENDPOINT],
  examples: ["posthorn endpoints secret acme main"],
  async run({ api, out, args }) {
    await showSecret(api, out, path`/app/${args.app}/endpoint/${args.endpoint}`)
  },
})

export const rotate = action({
  summary: "make a new secret; the old one signs beside it for a day, and the new one is shown",
  args: [APP, ENDPOINT],
  flags: ROTATE_FLAGS,
  examples: ["posthorn endpoints rotate acme main", "posthorn endpoints rotate acme main --grace 2h"],
  async run({ api, out, args, fields }) {
    await rotateSecret(api, out, path`/app/${args.app}/endpoint/${args.endpoint}`, fields)
  },
})
