/** The scenario: send, kill the engine, retry, show the dead letters, repair, replay, audit. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Posthorn } from "../../index.ts"
import { type Audit, audit } from "./audit.ts"
import { APP, ENDPOINTS, EVENTS, MOVED, message, SLEEPY } from "./endpoints.ts"
import type { Receipt } from "./engine.ts"
import { EngineProcess } from "./engine-process.ts"
import { narrate, narrateCutOffs, narrateDead } from "./narrate.ts"
import type { DemoReceiver } from "./receiver.ts"
import { type DemoState, readSnapshot } from "./state.ts"

export interface Demo {
  readonly state: DemoState
  /** A second Posthorn on the same file, which does not deliver. */
  readonly operator: Posthorn
  readonly receiver: DemoReceiver
  /** The process that delivers, and is killed. */
  engine: EngineProcess | null
}

/** Pause for viewers. */
const BEAT_MS = 350
const REFRESH_MS = 80
/** The demo takes ten seconds. */
const PATIENCE_MS = 60_000

export async function play(demo: Demo): Promise<Audit> {
  const { state, receiver } = demo
  await createEndpoints(demo)
  const pid = await startEngine(demo)
  state.say("loud", "", `an empty SQLite file, ${ENDPOINTS.length} endpoints, the engine as process ${pid}`)
  const receipts = await sendAll(demo)
  await killInTheMiddle(demo)

  state.chapter = "retry"
  await until(demo, "the retries to end", () => isSettled(state))
  state.chapter = "dead letters"
  const dead = state.snapshot.deliveries.filter(({ status }) => status === "dead")
  narrateDead(state, dead)
  await pause(demo, 5 * BEAT_MS)

  state.chapter = "replay"
  const replayed = await replay(demo)
  await until(demo, "the replay to end", () => isSettled(state))
  await pause(demo, BEAT_MS)
  await demo.engine?.close()
  state.engine = "stopped"
  state.chapter = "audit"
  return audit(state, receiver, { receipts, dead, replayed })
}

async function createEndpoints({ operator, receiver, state }: Demo): Promise<void> {
  await operator.applications.create({ uid: APP, name: "Acme" })
  for (const { uid, endpoint } of ENDPOINTS) {
    const { id } = await operator.endpoints.create(APP, { ...endpoint, uid, url: receiver.url(uid) })
    receiver.expect(uid, (await operator.endpoints.secret(APP, uid)).key)
    state.uids.set(id, uid)
  }
}

async function startEngine(demo: Demo): Promise<number> {
  const { state } = demo
  state.engine = "starting"
  demo.engine = new EngineProcess(state.file, (event) => narrate(state, event))
  await demo.engine.ready
  state.engine = `running, pid ${demo.engine.pid}`
  return demo.engine.pid
}

/** Sends each event, and the first one again, as a client that lost the response does. */
async function sendAll(demo: Demo): Promise<Receipt[]> {
  const { state, engine } = demo
  const receipts: Receipt[] = []
  for (const n of [1, 2, 3, 1, 4]) {
    const receipt = await engine!.send(message(n))
    state.numbers.set(receipt.id, n)
    receipts.push(receipt)
    if (!receipt.duplicate) state.accepted++
    state.say(
      "loud",
      "",
      receipt.duplicate
        ? `send #${n} again with its idempotency key: recognised, nothing new`
        : `send #${n} invoice.${EVENTS[n - 1]}: on disk, for ${receipt.matched} endpoints`,
    )
    await pause(demo, BEAT_MS)
  }
  return receipts
}

/** Kills the engine while a request is in flight, so that its outcome is unknown. */
async function killInTheMiddle(demo: Demo): Promise<void> {
  const { state, receiver } = demo
  const last = EVENTS.length
  await until(demo, "the last event to hang", () => receiver.tally(SLEEPY).seen.has(last))
  await pause(demo, BEAT_MS)
  state.chapter = "kill -9"
  await demo.engine?.kill()
  state.engine = "killed"
  const { pending, failed } = state.snapshot.counts
  state.say("loud", "", `kill -9: ${pending + failed} deliveries open, ${SLEEPY}'s request in flight`)
  await pause(demo, 3 * BEAT_MS)
  const pid = await startEngine(demo)
  state.say("loud", "", `process ${pid} takes over: the file knows what is due and what was cut off`)
}

/** After the receivers recovered: enables the endpoint that a 410 disabled, and replays the dead letters. */
async function replay(demo: Demo): Promise<number> {
  const { operator, receiver, state } = demo
  receiver.mend()
  await operator.endpoints.update(APP, MOVED, { disabled: false })
  const found = await operator.dead.count({ app: APP })
  state.say("loud", "", `receivers mended, ${MOVED} enabled: replay ${found} dead letters`)
  let task = await operator.dead.retryMany({ app: APP })
  await until(demo, "the replay to begin", async () => {
    task = await operator.tasks.get(task.id)
    return task.status !== "running"
  })
  return task.changed
}

function isSettled({ snapshot: { counts } }: DemoState): boolean {
  return counts.pending + counts.failed === 0
}

async function pause(demo: Demo, ms: number): Promise<void> {
  const end = Date.now() + ms
  await until(demo, "time to pass", () => Date.now() >= end)
}

/** Every wait goes through here, so that the display shows the current state of the store. */
async function until(demo: Demo, what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    demo.state.snapshot = await readSnapshot(demo.operator)
    narrateCutOffs(demo.state)
    if (await holds()) return
    if (demo.engine?.failure) throw demo.engine.failure
    if (Date.now() > deadline) throw new Error(`the demo timed out waiting for ${what}`)
    await sleep(REFRESH_MS)
  }
}
