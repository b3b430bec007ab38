/** The story: send, kill the engine, retry, look at the dead letters, mend, replay, count. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Posthorn } from "../../index.ts"
import { type Audit, audit } from "./audit.ts"
import { APP, CAST, EVENTS, MOVED, message, SLEEPY } from "./cast.ts"
import type { Receipt } from "./engine.ts"
import type { EngineProcess } from "./engine-process.ts"
import { narrate } from "./narrate.ts"
import type { DemoReceiver } from "./receiver.ts"
import { type Books, readBooks, type Show } from "./show.ts"

export interface Stage {
  readonly show: Show
  /** An operator's look at the same file, beside the process that delivers. */
  readonly operator: Posthorn
  readonly receiver: DemoReceiver
  startEngine(onEvent: Parameters<typeof EngineProcess.start>[1]): Promise<EngineProcess>
}

/** Time for people to see what happened. */
const BEAT_MS = 350
const REFRESH_MS = 80
/** Far beyond the ten seconds that it takes: a demo that is stuck says so. */
const PATIENCE_MS = 60_000

export async function play(stage: Stage): Promise<Audit> {
  const { show, operator, receiver } = stage
  await createEndpoints(stage)
  let engine = await start(stage)
  const watch = new AbortController()
  const watching = refresh(stage, watch.signal)
  try {
    const receipts = await send(stage, engine)

    await receiver.tried(SLEEPY, 2)
    await sleep(BEAT_MS)
    show.chapter = "kill -9"
    await engine.kill()
    show.engine = "killed"
    const open = show.books.counts.pending + show.books.counts.failed
    show.say("loud", "", `kill -9 in the middle of it: ${open} deliveries open, one request under way`)
    await sleep(2 * BEAT_MS)
    engine = await start(stage)
    show.say("loud", "", "started again: the file knows what is due and what was cut off")

    show.chapter = "retry"
    await until(stage, engine, "the retries to end", isSettled)
    show.chapter = "dead letters"
    const dead = show.books.deliveries.filter(({ status }) => status === "dead")
    show.say("loud", "", `${dead.length} dead letters, each with its reason; everything else arrived`)
    await sleep(4 * BEAT_MS)

    show.chapter = "replay"
    const replayed = await replay(stage, engine)
    await until(stage, engine, "the replay to end", isSettled)
    await engine.close()
    show.engine = "stopped"
    show.books = await readBooks(operator)
    show.chapter = "audit"
    return audit(show, receiver, { receipts, dead, replayed })
  } finally {
    watch.abort()
    await watching
    engine.killNow()
  }
}

async function createEndpoints({ operator, receiver, show }: Stage): Promise<void> {
  await operator.applications.create({ uid: APP, name: "Acme" })
  for (const { uid, endpoint } of CAST) {
    const { id } = await operator.endpoints.create(APP, { ...endpoint, uid, url: receiver.url(uid) })
    receiver.expect(uid, (await operator.endpoints.secret(APP, uid)).key)
    show.uids.set(id, uid)
  }
}

async function start(stage: Stage): Promise<EngineProcess> {
  const { show } = stage
  show.engine = "starting"
  const engine = await stage.startEngine((event) => narrate(show, event))
  show.engine = `running, pid ${engine.pid}`
  return engine
}

/** Each event once, and the first one a second time, as a client does that lost the answer. */
async function send({ show }: Stage, engine: EngineProcess): Promise<Receipt[]> {
  const receipts: Receipt[] = []
  for (const n of [...EVENTS.keys()].map((i) => i + 1).concat(1)) {
    const receipt = await engine.send(message(n))
    show.numbers.set(receipt.id, n)
    receipts.push(receipt)
    const what = receipt.duplicate
      ? `send #${n} again, same idempotency key: recognised, nothing new is sent`
      : `send #${n} invoice.${EVENTS[n - 1]}: on disk, for ${receipt.matched} endpoints`
    if (!receipt.duplicate) show.accepted++
    show.say("loud", "", what)
    await sleep(BEAT_MS)
  }
  return receipts
}

/** What an operator does when the receivers are well again: enable what a 410 disabled, look how many, send them again. */
async function replay({ operator, receiver, show }: Stage, engine: EngineProcess): Promise<number> {
  receiver.mend()
  await operator.endpoints.update(APP, MOVED, { disabled: false })
  const found = await operator.dead.count({ app: APP })
  show.say("loud", "", `receivers mended, ${MOVED} enabled: replay ${found} dead letters`)
  const { id } = await operator.dead.retryMany({ app: APP })
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const task = await operator.tasks.get(id)
    if (task.status !== "running") return task.changed
    if (engine.failure !== null) throw engine.failure
    if (Date.now() > deadline) throw new Error("the demo waited in vain for the replay to begin")
    await sleep(REFRESH_MS)
  }
}

/** Keeps what the audience sees in step with the store. */
async function refresh({ operator, show }: Stage, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    show.books = await readBooks(operator)
    await sleep(REFRESH_MS)
  }
}

async function until(
  { operator, show }: Stage,
  engine: EngineProcess,
  what: string,
  holds: (books: Books) => boolean,
): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS
  while (!holds(await readBooks(operator).then((books) => (show.books = books)))) {
    if (engine.failure !== null) throw engine.failure
    if (Date.now() > deadline) throw new Error(`the demo waited in vain for ${what}`)
    await sleep(REFRESH_MS)
  }
}

function isSettled({ counts }: Books): boolean {
  return counts.pending + counts.failed === 0
}
