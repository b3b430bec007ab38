/** `posthorn alerts`: the channels that notifications go to. */
import type { Group } from "../command.ts"
import { CHANNEL_ACTIONS } from "./alert-channels.ts"

export const command: Group = {
  summary: "alerts: the channels that notifications go to",
  actions: CHANNEL_ACTIONS,
}
