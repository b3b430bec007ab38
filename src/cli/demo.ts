/** `posthorn demo`: the real engine on a real file against receivers that fail and recover. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openPosthorn } from "../index.ts"
import { openDisplay } from "./demo/display.ts"
import { DemoReceiver, LOOPBACK } from "./demo/receiver.ts"
import { type Demo, play } from "./demo/scenario.ts"
import { DemoState } from "./demo/state.ts"
import type { Flags } from "./parse-flags.ts"

export const options = { keep: { type: "boolean" } } as const

export const help = `posthorn demo [--keep]

Four events go to nine endpoints; eight receivers fail, each in a way of its own. One is down and comes back:
its circuit breaker opens, probes, and sends the rest slowly. The engine is killed
in the middle of it and started again, the retries run, the dead letters are replayed once
the receivers are mended, and in the end everything is counted: what the sender was promised,
what the file says, what the receivers took. The exit code is 1 if that does not add up.

  --keep   leave the SQLite file where it is`

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

export async function run({ keep }: Flags): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-demo-"))
  const state = new DemoState(join(folder, "posthorn.db"))
  const display = openDisplay(process.stdout, state)
  let demo: Demo | null = null
  // On every exit, also after Ctrl-C or a bug: restore the terminal, remove the files.
  process.once("exit", () => {
    display.leave()
    demo?.engine?.killNow()
    if (!keep) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  })
  for (const [signal, code] of Object.entries(SIGNALS)) {
    process.once(signal, async () => {
      display.leave()
      await demo?.engine?.kill()
      process.exit(code)
    })
  }

  const receiver = await DemoReceiver.start()
  const operator = await openPosthorn({
    store: `sqlite:${state.file}`,
    deliver: false,
    egress: LOOPBACK,
    logger: "silent",
  })
  try {
    demo = { state, operator, receiver, engine: null }
    const audit = await play(demo)
    display.end(audit)
    console.log(keep ? `\n The file: ${state.file}` : "\n The file is removed; --keep leaves it for a look.")
    return audit.problems.length === 0 ? 0 : 1
  } finally {
    display.leave()
    demo?.engine?.killNow()
    await operator.close()
    await receiver.close()
  }
}
