/** `posthorn agent`: receives webhooks behind a firewall and forwards them to a local program. */
import { readFile } from "node:fs/promises"
import { type AgentClient, connectAgent } from "../../agent/agent.ts"
import type { AgentDisconnected } from "../../agent/options.ts"
import { clearTextWarning, relayUrl } from "../../agent/server-url.ts"
import { printable } from "../../core/text.ts"
import { disconnectedText, handledLine, handledRecord, inText } from "../agent-line.ts"
import { action, type Command } from "../command.ts"
import { on, text, wholeNumber } from "../flag.ts"
import type { Output } from "../output.ts"
import { whenStopped } from "../signals.ts"
import { asUsageError, UsageError } from "../usage-error.ts"

const KEY_VARIABLE = "POSTHORN_API_KEY"

export const command: Command = action({
  summary: "receives webhooks behind a firewall, and forwards them to a local program",
  about: `It connects outward, and the server sends it the deliveries of the endpoint relay://NAME. Each is forwarded with
method, path, query, headers and body as they came, and acknowledged with the local program's answer: 2xx is
delivered, 4xx rejected, and everything else is tried again. It goes on until Ctrl-C or SIGTERM, and then
finishes the webhooks in flight; a second signal ends it at once. The key, with the scope agent, is in
${KEY_VARIABLE} or in a file.`,
  alone: true,
  flags: {
    server: text("URL", "wss://… or https://…, the server to connect to (POSTHORN_SERVER)"),
    name: text("NAME", "the NAME of the endpoint's URL, relay://NAME"),
    forward: text("URL", "the local program, such as http://localhost:3000"),
    "key-file": text("FILE", `a file with the key, instead of ${KEY_VARIABLE}`),
    credit: wholeNumber("N", "the most webhooks at once (16)"),
    ca: text("FILE", "certificates of the authority that signed the server's, as PEM"),
    "max-frame-bytes": wholeNumber("N", "the largest frame of the server (8388608, for payloads of 1 MiB)"),
    json: on("one line of JSON for each webhook, for programs"),
  },
  examples: [
    "posthorn agent --server wss://hooks.example.com --name hub --forward http://localhost:3000",
    "posthorn agent --server wss://10.0.0.5:8071 --name hub --forward http://localhost:3000/hooks --key-file agent.key --ca ca.pem",
  ],
  async run({ flags, out }) {
    const { name = "", forward, credit, ca, "key-file": keyFile, "max-frame-bytes": maxFrameBytes } = flags
    const server = flags.server ?? process.env.POSTHORN_SERVER ?? ""
    if (server === "")
      throw new UsageError("--server is missing: give the server's URL, such as wss://hooks.example.com")
    if (name === "")
      throw new UsageError("--name is missing: give the NAME of the endpoint's URL, relay://NAME")
    if (forward === undefined)
      throw new UsageError(
        "--forward is missing: give the URL of the local program, such as http://localhost:3000",
      )
    const key = await readKey(keyFile)
    const trusted = ca === undefined ? {} : { ca: await fileText("--ca", ca) }
    const stopped = whenStopped()
    const agent = connected(() =>
      connectAgent({
        server,
        key,
        name,
        forward,
        ...trusted,
        ...(credit === undefined ? {} : { credit }),
        ...(maxFrameBytes === undefined ? {} : { maxFrameBytes }),
        logger: "silent",
        ...reports(out, relayUrl(server), name),
      }),
    )
    const warning = clearTextWarning(relayUrl(server))
    if (warning !== null) out.note(`Warning: ${warning}`)
    void stopped.then((signal) => {
      out.note(`Got ${signal}: finishes the webhooks in flight. A second signal ends it at once.`)
      return agent.close()
    })
    const error = await agent.closed
    if (error !== null) throw error
    return 0
  },
})

function reports(out: Output, url: URL, name: string) {
  let told: string | undefined
  return {
    onConnected: () => {
      told = undefined
      out.note(`Connected to ${url.host} as ${name}; Ctrl-C ends it.`)
    },
    onDisconnected: (disconnected: AgentDisconnected) => {
      if (disconnected.retryInMs === null) return
      out.note(disconnectedText(disconnected, inText(disconnected), told))
      told = disconnected.reason
    },
    onHandled: (handled: Parameters<typeof handledLine>[0]) => {
      const at = new Date()
      out.line(handledRecord(handled, at), handledLine(handled, at))
    },
  }
}

async function readKey(file: string | undefined): Promise<string> {
  const key = file === undefined ? (process.env[KEY_VARIABLE] ?? "") : await fileText("--key-file", file)
  if (key.trim() === "")
    throw new UsageError(`the agent needs a key: set ${KEY_VARIABLE}, or name a file with --key-file`)
  return key.trim()
}

async function fileText(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8")
  } catch (error) {
    throw new UsageError(`${flag} ${printable(file)} cannot be read: ${printable((error as Error).message)}`)
  }
}

/** Names the flags of options that are refused. */
function connected(connect: () => AgentClient): AgentClient {
  const flags = ["server", "name", "forward", "credit", "ca"].map((name) => [name, `--${name}`])
  const names = { ...Object.fromEntries(flags), maxFrameBytes: "--max-frame-bytes" }
  try {
    return connect()
  } catch (error) {
    throw asUsageError(error, names)
  }
}
