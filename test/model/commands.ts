/** Events in the life of a Posthorn, as commands that fast-check combines. */
import fc from "fast-check"
import type { Mood, World } from "./world.ts"

export interface Model {
  /** Names of endpoints that exist, with whether they are ordered. */
  readonly endpoints: Map<string, { id: string; ordered: boolean; deleted: boolean }>
  /** Accepted messages, with the endpoints that each must reach, by name. */
  readonly accepted: Map<string, { endpoints: string[]; key: string | null }>
  /** Messages that an operator's hand touched: their order and their end are the operator's. */
  readonly touched: Set<string>
  /** With a short retention rows are removed while the run goes on; without, all of them are there at the end. */
  readonly retention: boolean
}

type Command = fc.AsyncCommand<Model, World>

const KEEP = { dead: "never", delivered: "never" } as const
const REMOVE = { dead: { after: 7200 }, delivered: { after: 5 } } as const
const retry = (model: Model) => ({
  delays: [1, 10],
  maxAttempts: 3,
  retention: model.retention ? REMOVE : KEEP,
})
const MOODS: readonly Mood[] = ["fine", "broken", "hangs", "rejects", "gone", "busy"]

const command = (
  name: string,
  run: (model: Model, world: World) => Promise<void>,
  check = (_model: Model) => true,
): Command => ({
  check,
  run,
  toString: () => name,
})
const some = (model: Model, pick: number) => {
  const living = [...model.endpoints].filter(([, { deleted }]) => !deleted)
  return living.length === 0 ? undefined : living[pick % living.length]
}
const hasEndpoint = (model: Model) => some(model, 0) !== undefined

/** A send that the store refused may have been written all the same: the caller cannot know, so the model does not ask for it. */
async function send(
  model: Model,
  world: World,
  n: number,
  more: object = {},
  key: string | null = null,
): Promise<void> {
  const expected = [...model.endpoints].filter(([, { deleted }]) => !deleted)
  const message = {
    eventType: "thing",
    payload: { n },
    ...more,
    ...(key === null ? {} : { idempotencyKey: key }),
  }
  const result = await world.posthorn.send("acme", message).catch(() => null)
  if (result === null || result.duplicate) return
  // 410 disables an endpoint: what counts is how many the store says it matched, checked against the rows at the end.
  const names = expected.length === result.matched ? expected.map(([name]) => name) : []
  model.accepted.set(result.id, { endpoints: names, key })
}

const commands = {
  endpoint: fc.boolean().map((ordered) =>
    command(
      `add ${ordered ? "ordered " : ""}endpoint`,
      async (model, world) => {
        const name = `e${model.endpoints.size}`
        world.moods.set(name, "fine")
        const { id } = await world.posthorn.endpoints.create("acme", {
          url: `http://127.0.0.1:9/${name}`,
          ordered,
          retry: retry(model),
        })
        model.endpoints.set(name, { id, ordered, deleted: false })
      },
      (model) => model.endpoints.size < 5,
    ),
  ),
  send: fc.nat(1000).map((n) => command(`send ${n}`, (model, world) => send(model, world, n))),
  keyed: fc.nat(3).map((n) =>
    command(`send with key ${n}`, async (model, world) => {
      await send(model, world, n, {}, `key-${n}`)
    }),
  ),
  deferred: fc
    .nat(100)
    .map((s) => command(`send in ${s} s`, (model, world) => send(model, world, s, { delaySeconds: s }))),
  mood: fc.tuple(fc.nat(9), fc.constantFrom(...MOODS)).map(([pick, mood]) =>
    command(
      `receiver ${pick} ${mood}`,
      async (model, world) => {
        world.moods.set(some(model, pick)![0], mood)
      },
      hasEndpoint,
    ),
  ),
  pass: fc.constantFrom(0, 500, 1000, 10_000, 31_000, 3_600_000).map((ms) =>
    command(`${ms} ms pass`, async (_model, world) => {
      world.clock.advance(ms)
      await world.quiet()
    }),
  ),
  jump: fc
    .constantFrom(3_600_000, -3_600_000, 31_536_000_000)
    .map((ms) => command(`wall clock jumps ${ms} ms`, async (_model, world) => world.clock.jumpWall(ms))),
  crash: fc.constant(command("crash", (_model, world) => world.crash())),
  crashInBurst: fc.nat(12).map((turns) =>
    command(`crash ${turns} turns into a burst`, async (model, world) => {
      for (let i = 0; i < 5; i++) void send(model, world, i)
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
      await world.crash()
    }),
  ),
  restart: fc.constant(command("restart", (_model, world) => world.restart())),
  fail: fc
    .array(fc.constantFrom("before" as const, "after" as const), { minLength: 1, maxLength: 4 })
    .map((how) => command(`store fails ${how.join(", ")}`, async (_model, world) => world.fail(...how))),
  pause: fc.tuple(fc.nat(9), fc.boolean()).map(([pick, paused]) =>
    command(
      `${paused ? "pause" : "resume"} ${pick}`,
      async (model, world) => {
        const { id } = some(model, pick)![1]
        await (paused
          ? world.posthorn.endpoints.pause("acme", id)
          : world.posthorn.endpoints.resume("acme", id))
      },
      hasEndpoint,
    ),
  ),
  disable: fc.tuple(fc.nat(9), fc.boolean()).map(([pick, disabled]) =>
    command(
      `${disabled ? "disable" : "enable"} ${pick}`,
      async (model, world) => {
        await world.posthorn.endpoints.update("acme", some(model, pick)![1].id, { disabled })
      },
      hasEndpoint,
    ),
  ),
  remove: fc.nat(9).map((pick) =>
    command(
      `delete endpoint ${pick}`,
      async (model, world) => {
        const endpoint = some(model, pick)![1]
        await world.posthorn.endpoints.delete("acme", endpoint.id)
        endpoint.deleted = true
      },
      hasEndpoint,
    ),
  ),
  retryDead: fc.constant(
    command("retry all dead", async (model, world) => {
      await touch(model, world, "dead")
      await world.posthorn.dead.retryMany({}).catch(() => {})
      await world.quiet()
    }),
  ),
  cancel: fc.nat(20).map((pick) =>
    command(`cancel ${pick}`, async (model, world) => {
      const { data } = await world.posthorn.deliveries.list({ limit: 50 })
      const waiting = data.filter(({ status }) => status === "pending" || status === "failed")
      const chosen = waiting[pick % waiting.length]
      if (chosen === undefined) return
      model.touched.add(chosen.messageId)
      await world.posthorn.deliveries.cancel(chosen.id).catch(() => {})
    }),
  ),
  reset: fc.constant(
    command("operator resets dead rows by SQL", async (model, world) => {
      await touch(model, world, "dead")
      await world.ground.sql(
        "UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE status = 'dead'",
      )
      world.clock.advance(5000)
      await world.quiet()
    }),
  ),
  maintain: fc.constant(
    command("maintenance", async (_model, world) => world.posthorn.engine!.maintainOnce()),
  ),
}

async function touch(model: Model, world: World, status: "dead"): Promise<void> {
  const { data } = await world.posthorn.deliveries.list({ status, limit: 250 })
  for (const { messageId } of data) model.touched.add(messageId)
}

/** Sends weigh more than trouble: without messages there is nothing to lose. */
export const allCommands = fc.commands(
  [
    commands.endpoint,
    commands.send,
    commands.send.map((one) => one),
    commands.keyed,
    commands.deferred,
    commands.mood,
    commands.pass,
    commands.pass.map((one) => one),
    commands.jump,
    commands.crash,
    commands.crashInBurst,
    commands.restart,
    commands.fail,
    commands.pause,
    commands.disable,
    commands.remove,
    commands.retryDead,
    commands.cancel,
    commands.reset,
    commands.maintain,
  ],
  { maxCommands: 60, size: "large" },
)
