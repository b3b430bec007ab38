/** `posthorn listen`: webhooks of a provider on a developer's machine, as long as the command runs. */
import { forwardUrl } from "../../agent/options.ts"
import { action, type Command } from "../command.ts"
import { LISTEN_FLAGS } from "../listen/listen-flags.ts"
import { Session } from "../listen/session.ts"
import { whenStopped } from "../signals.ts"
import { asUsageError, UsageError } from "../usage-error.ts"

export const command: Command = action({
  summary: "webhooks of a provider on your own machine, while you develop",
  about: `It makes a public URL on a server, and what is sent there goes to the local program, as it came. In a terminal it
shows a table: j and k select, r sends a webhook again, p prints its headers and body, q ends it. At the end it
deletes all that it made. It needs a running server (posthorn serve) and an admin's key.`,
  alone: true,
  flags: LISTEN_FLAGS,
  examples: [
    "posthorn listen --forward http://localhost:3000",
    "posthorn listen --forward http://localhost:3000/hooks --verify github --secret-file secret.txt --only push",
    "posthorn listen --forward http://localhost:3000 --app acme --print",
  ],
  async run({ api, out, flags }) {
    const server = (flags.server ?? process.env.POSTHORN_SERVER ?? "").trim()
    if (server === "")
      throw new UsageError(
        "listen needs a server: start one with posthorn serve, and give its URL with --server or POSTHORN_SERVER, such as http://localhost:8071",
      )
    if (flags.forward === undefined)
      throw new UsageError(
        "--forward is missing: give the URL of the local program, such as http://localhost:3000",
      )
    const stop = new AbortController()
    // Also when the terminal is closed, or the reader of a pipe.
    void whenStopped(["SIGINT", "SIGTERM", "SIGHUP"]).then(() => stop.abort())
    for (const stream of [process.stdin, process.stdout, process.stderr])
      stream.on("error", () => stop.abort())
    return new Session(api, out, {
      server,
      forward: localProgram(flags.forward),
      flags,
      stopped: stop.signal,
      // As a signal: another one ends it at once.
      stop: () => void process.emit("SIGINT"),
    }).run()
  },
})

function localProgram(given: string): URL {
  try {
    return forwardUrl(given)
  } catch (error) {
    throw asUsageError(error, { forward: "--forward" })
  }
}
