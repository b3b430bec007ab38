/**
 * The program that the kill tests kill: it accepts messages in a burst, delivers them, and says on standard output what it
 * accepted. It knows nothing of the test but its store, its receiver and the numbers that each of its senders goes on with.
 */
import { writeSync } from "node:fs"
import { parseArgs } from "node:util"
import { hasCode } from "../../src/core/errors.ts"
import { openPosthorn, type PolicyInput, type Posthorn, PosthornError } from "../../src/index.ts"

const { values } = parseArgs({
  options: {
    store: { type: "string" },
    schedule: { type: "string" },
    /** Of the worker, in milliseconds, on a store that others may share. */
    lease: { type: "string", default: "8000" },
    /** The receiver's URL; an endpoint's path is its uid. */
    receiver: { type: "string" },
    plain: { type: "string", default: "" },
    ordered: { type: "string", default: "" },
    /** For each sender the number of its next message. */
    next: { type: "string", default: "" },
    /** How many messages each sender sends. Then the program ends by itself, when nothing waits. */
    count: { type: "string", default: "Infinity" },
    /** From how many pages on SQLite's log is copied into the file. */
    "long-log": { type: "string" },
    /** The program's reaction to a lost store: `throw`, `exit`, or `close` and an ordinary end. */
    lost: { type: "string", default: "throw" },
  },
})

const APP = "acme"
/**
 * Short, so that what fails in one life of the program is tried again in the same. The breaker opens late: messages that always fail come in
 * rows of eight, and each of their attempts would be a probe, one a second.
 */
const RETRY: PolicyInput = {
  delays: [0.02, 0.05, 0.1],
  maxAttempts: 5,
  timeout: 0.4,
  breaker: { failures: 50, attempts: 1000, open: 1, maxOpen: 1, ramp: 1000 },
  budget: { perMinute: 100_000 },
}
/** Senders wait while more than this is not delivered: the line stays full, and draining it stays short. */
const MOST_LIVE = 300

// Straight into the pipe: what was written there is the reader's, whatever happens to this process next.
const say = (...words: (string | number)[]) => void writeSync(1, `${words.join(" ")}\n`)

const { store = "", schedule, "long-log": longLog } = values
/** Nothing is done for `throw`: that is the library's own way. */
const ON_LOST: { readonly [lost: string]: { onFatal?: () => void } } = {
  throw: {},
  exit: { onFatal: () => process.exit(1) },
  close: { onFatal: () => void posthorn.close() },
}
const posthorn = await openPosthorn(
  {
    store,
    ...(schedule === undefined ? {} : { schedule }),
    retry: RETRY,
    egress: { allow: ["127.0.0.0/8"] },
    logger: "silent",
    ...ON_LOST[values.lost],
  },
  {
    leaseMs: Number(values.lease),
    ...(longLog === undefined ? {} : { longLogPages: Number(longLog) }),
  },
)
let live = 0
let finished = Promise.withResolvers<void>()
posthorn.on("gateway:webhooks", ({ type }) => {
  if (type === "delivery.attempt") return
  live--
  finished.resolve()
  finished = Promise.withResolvers()
})
live = await countLive(posthorn)
say("open", process.pid)

await ensureEndpoints(posthorn)
say("ready")
await Promise.all(list(values.next).map((next, sender) => sendOn(sender, Number(next), Number(values.count))))
// The next end is awaited from before the count, so that none falls in between.
for (let next = finished.promise; (await countLive(posthorn)) > 0; next = finished.promise) await next
await posthorn.close()

async function sendOn(sender: number, from: number, count: number): Promise<void> {
  for (let n = from; n < from + count; n++) {
    while (live > MOST_LIVE) await finished.promise
    try {
      const { id, matched, duplicate } = await posthorn.send(APP, {
        eventType: n % 4 === 0 ? "burst.ordered" : "burst.plain",
        payload: { sender, n, filler: "x".repeat(200 + ((n * 37) % 400)) },
        idempotencyKey: `${sender}-${n}`,
      })
      say("accepted", sender, n, id, Number(duplicate))
      if (!duplicate) live += matched
    } catch (error) {
      const code = error instanceof PosthornError ? error.code : String(error)
      say("refused", sender, n, code)
      // The program ends in the way that it was told to.
      if (code === "store_failed") await new Promise(() => {})
      return
    }
  }
}

async function ensureEndpoints(posthorn: Posthorn): Promise<void> {
  await unlessFound(posthorn.applications.get(APP), () =>
    posthorn.applications.create({ uid: APP, name: "Acme" }),
  )
  const all = [
    ...list(values.plain).map((uid) => ({ uid })),
    // A line goes one by one: it gets a share of the messages, so that the others have something to do meanwhile.
    ...list(values.ordered).map((uid) => ({ uid, ordered: true, eventTypes: ["burst.ordered"] })),
  ]
  for (const endpoint of all) {
    const url = `${values.receiver}${endpoint.uid}`
    await unlessFound(posthorn.endpoints.get(APP, endpoint.uid), () =>
      posthorn.endpoints.create(APP, { ...endpoint, url }),
    )
  }
}

async function unlessFound(found: Promise<unknown>, create: () => Promise<unknown>): Promise<void> {
  try {
    await found
  } catch (error) {
    if (!hasCode(error, "not_found")) throw error
    await create()
  }
}

async function countLive(posthorn: Posthorn): Promise<number> {
  const { pending, failed } = await posthorn.stats()
  return pending + failed
}

function list(text: string): string[] {
  return text === "" ? [] : text.split(",")
}
