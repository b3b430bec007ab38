/** `posthorn dashboard`: a link that signs in. */
import { action, type Command } from "../command.ts"
import { on } from "../flag.ts"

export const command: Command = action({
  summary: "print a link that signs one browser in to the dashboard, within an hour",
  flags: {
    "read-only": on("the session sees everything and changes nothing", { field: "readOnly" }),
  },
  examples: ["posthorn dashboard", "posthorn dashboard --read-only"],
  async run({ api, out, fields }) {
    const made = await api.post<{ readonly url: string }>("/auth/dashboard-link", fields)
    out.say(made, made.url)
  },
})
