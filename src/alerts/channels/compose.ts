/** From a notification to the form in which it leaves through a channel. */
import { type Bytes, bytesOfText } from "../../core/bytes.ts"
import type { Outgoing } from "../../transport/notify/outgoing.ts"
import { type ChannelSettings, secretsOf } from "./channel.ts"
import { mailOf } from "./mail.ts"
import { pagerDutyEvent } from "./pagerduty.ts"
import { readPayload } from "./payload.ts"
import { slackMessage } from "./slack.ts"

/** `body` is the payload that `writePayload` made. */
export function compose(settings: ChannelSettings, body: Bytes, messageId: string): Outgoing {
  const secrets = secretsOf(settings)
  const json = (document: object) => bytesOfText(JSON.stringify(document))
  switch (settings.kind) {
    case "webhook":
      return { via: "http", url: settings.url, body: null, secrets }
    case "slack":
      return { via: "http", url: settings.url, body: json(slackMessage(readPayload(body))), secrets }
    case "pagerduty": {
      const event = pagerDutyEvent(readPayload(body), settings)
      return { via: "http", url: settings.url, body: json(event), secrets }
    }
    case "mail":
      return { via: "smtp", server: settings, mail: mailOf(readPayload(body), settings, messageId), secrets }
    default:
      return settings satisfies never
  }
}
