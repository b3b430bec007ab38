/** The story: send, kill the engine, retry, look at the dead letters, mend, replay, count. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Posthorn } from "../../index.ts"
import { type Audit, audit } from "./audit.ts"
import { APP, CAST, EVENTS, MOVED, message, SLEEPY } from "./cast.ts"
import type { Receipt } from "./engine.ts"
import { EngineProcess } from "./engine-process.ts"
import { narrate, narrateCutOffs, narrateDead } from "./narrate.ts"
import type { DemoReceiver } from "./receiver.ts"
import { readBooks, type Show } from "./show.ts"

export interface Stage {
  readonly show: Show
  /** An operator's hand on the same file, beside the process that delivers. */
  readonly operator: Posthorn
  readonly receiver: DemoReceiver
  /** The process that delivers, and is killed. */
  engine: EngineProcess | null
}

/** Time for people to see what happened. */
const BEAT_MS = 350
const REFRESH_MS = 80
/** Far beyond the ten seconds that it takes: a demo that is stuck says so. */
const PATIENCE_MS = 60_000

export async function play(stage: Stage): Promise<Audit> {
  const { show, receiver } = stage
  await createEndpoints(stage)
  const pid = await startEngine(stage)
  show.say("loud", "", `an empty SQLite file, ${CAST.length} endpoints, the engine as process ${pid}`)
  const receipts = await sendAll(stage)
  await killInTheMiddle(stage)

  show.chapter = "retry"
  await until(stage, "the retries to end", () => isSettled(show))
  show.chapter = "dead letters"
  const dead = show.books.deliveries.filter(({ status }) => status === "dead")
  narrateDead(show, dead)
  await pause(stage, 5 * BEAT_MS)

  show.chapter = "replay"
  const replayed = await replay(stage)
  await until(stage, "the replay to end", () => isSettled(show))
  await pause(stage, BEAT_MS)
  await stage.engine?.close()
  show.engine = "stopped"
  show.chapter = "audit"
  return audit(show, receiver, { receipts, dead, replayed })
}

async function createEndpoints({ operator, receiver, show }: Stage): Promise<void> {
  await operator.applications.create({ uid: APP, name: "Acme" })
  for (const { uid, endpoint } of CAST) {
    const { id } = await operator.endpoints.create(APP, { ...endpoint, uid, url: receiver.url(uid) })
    receiver.expect(uid, (await operator.endpoints.secret(APP, uid)).key)
    show.uids.set(id, uid)
  }
}

async function startEngine(stage: Stage): Promise<number> {
  const { show } = stage
  show.engine = "starting"
  stage.engine = new EngineProcess(show.file, (event) => narrate(show, event))
  await stage.engine.ready
  show.engine = `running, pid ${stage.engine.pid}`
  return stage.engine.pid
}

/** Each event, and the first one a second time, as a client does that lost the answer. */
async function sendAll(stage: Stage): Promise<Receipt[]> {
  const { show, engine } = stage
  const receipts: Receipt[] = []
  for (const n of [1, 2, 3, 1, 4]) {
    const receipt = await engine!.send(message(n))
    show.numbers.set(receipt.id, n)
    receipts.push(receipt)
    if (!receipt.duplicate) show.accepted++
    show.say(
      "loud",
      "",
      receipt.duplicate
        ? `send #${n} again with its idempotency key: recognised, nothing new`
        : `send #${n} invoice.${EVENTS[n - 1]}: on disk, for ${receipt.matched} endpoints`,
    )
    await pause(stage, BEAT_MS)
  }
  return receipts
}

/** While a receiver keeps a request waiting: nobody can know whether that one arrived. */
async function killInTheMiddle(stage: Stage): Promise<void> {
  const { show, receiver } = stage
  const last = EVENTS.length
  await until(stage, "the last event to hang", () => receiver.tally(SLEEPY).seen.has(last))
  await pause(stage, BEAT_MS)
  show.chapter = "kill -9"
  await stage.engine?.kill()
  show.engine = "killed"
  const { pending, failed } = show.books.counts
  show.say("loud", "", `kill -9: ${pending + failed} deliveries open, ${SLEEPY}'s request under way`)
  await pause(stage, 3 * BEAT_MS)
  const pid = await startEngine(stage)
  show.say("loud", "", `process ${pid} takes over: the file knows what is due and what was cut off`)
}

/** What an operator does when the receivers are well again: enable what a 410 disabled, count, send again. */
async function replay(stage: Stage): Promise<number> {
  const { operator, receiver, show } = stage
  receiver.mend()
  await operator.endpoints.update(APP, MOVED, { disabled: false })
  const found = await operator.dead.count({ app: APP })
  show.say("loud", "", `receivers mended, ${MOVED} enabled: replay ${found} dead letters`)
  let task = await operator.dead.retryMany({ app: APP })
  await until(stage, "the replay to begin", async () => {
    task = await operator.tasks.get(task.id)
    return task.status !== "running"
  })
  return task.changed
}

function isSettled({ books: { counts } }: Show): boolean {
  return counts.pending + counts.failed === 0
}

async function pause(stage: Stage, ms: number): Promise<void> {
  const end = Date.now() + ms
  await until(stage, "time to pass", () => Date.now() >= end)
}

/** Every wait goes through here, so that what the audience sees is in step with the store. */
async function until(stage: Stage, what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    stage.show.books = await readBooks(stage.operator)
    narrateCutOffs(stage.show)
    if (await holds()) return
    if (stage.engine?.failure) throw stage.engine.failure
    if (Date.now() > deadline) throw new Error(`the demo waited in vain for ${what}`)
    await sleep(REFRESH_MS)
  }
}
