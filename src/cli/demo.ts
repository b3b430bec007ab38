/** `posthorn demo`: the real engine on a real file against receivers that fail and recover. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openPosthorn } from "../index.ts"
import { audienceOf } from "./demo/audience.ts"
import { DemoReceiver, LOOPBACK } from "./demo/receiver.ts"
import { play, type Stage } from "./demo/scenario.ts"
import { Show } from "./demo/show.ts"
import type { Flags } from "./options.ts"

export const options = { keep: { type: "boolean" } } as const

export const help = `posthorn demo [--keep]

Four events go to eight endpoints; seven receivers fail, each in a way of its own. The engine is killed
in the middle of it and started again, the retries run, the dead letters are replayed once
the receivers are mended, and in the end everything is counted: what the sender was promised,
what the file says, what the receivers took. The exit code is 1 if that does not add up.

  --keep   leave the SQLite file where it is`

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

export async function run({ keep }: Flags): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-demo-"))
  const show = new Show(join(folder, "posthorn.db"))
  const audience = audienceOf(process.stdout, show)
  let stage: Stage | null = null
  // On every way out, Ctrl-C and a bug of our own included: the terminal as it was, nothing left behind.
  process.once("exit", () => {
    audience.leave()
    stage?.engine?.killNow()
    if (!keep) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  })
  for (const [signal, code] of Object.entries(SIGNALS)) {
    process.once(signal, async () => {
      audience.leave()
      await stage?.engine?.kill()
      process.exit(code)
    })
  }

  const receiver = await DemoReceiver.start()
  const operator = await openPosthorn({
    store: `sqlite:${show.file}`,
    deliver: false,
    egress: LOOPBACK,
    logger: "silent",
  })
  try {
    stage = { show, operator, receiver, engine: null }
    const audit = await play(stage)
    audience.end(audit)
    console.log(keep ? `\n The file: ${show.file}` : "\n The file is removed; --keep leaves it for a look.")
    return audit.problems.length === 0 ? 0 : 1
  } finally {
    audience.leave()
    stage?.engine?.killNow()
    await operator.close()
    await receiver.close()
  }
}
