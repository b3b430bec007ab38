/**
 * Random lives of a Posthorn: sends, crashes, lost answers, clock jumps, pauses, retries, deletes. Whatever happens, what was
 * accepted ends as delivered or dead, what is delivered was received, and lines keep their order. A failure prints its seed;
 * POSTHORN_MODEL_SEED repeats it, POSTHORN_MODEL_RUNS makes more of them.
 */
import fc from "fast-check"
import { expect, test } from "vitest"
import { freshGround } from "../support/combination.ts"
import type { Row } from "../support/ground.ts"
import { rounds } from "../support/length.ts"
import { allCommands, type Model } from "./commands.ts"
import { World } from "./world.ts"

const RUNS = Number(process.env.POSTHORN_MODEL_RUNS ?? rounds(5, 60))
const SEED = process.env.POSTHORN_MODEL_SEED

test("no accepted message is lost in any sequence of faults", { timeout: 16_000 * RUNS }, async () => {
  await fc.assert(
    fc.asyncProperty(allCommands, fc.boolean(), async (commands, retention) => {
      const world = new World(await freshGround({ migrated: true }))
      await world.open()
      await world.posthorn.applications.create({ uid: "acme", name: "Acme" })
      const model: Model = { endpoints: new Map(), accepted: new Map(), touched: new Set(), retention }
      try {
        await fc.asyncModelRun(() => ({ model, real: world }), commands)
        await drain(world, model)
        await examine(world, model)
      } finally {
        await world.close()
      }
    }),
    {
      numRuns: RUNS,
      ...(SEED === undefined ? {} : { seed: Number(SEED) }),
      endOnFailure: SEED === undefined,
    },
  )
})

/** Everything is mended, and hours pass: nothing may wait any more. */
async function drain(world: World, model: Model): Promise<void> {
  world.heal()
  // A receiver that has just said 410 disables its endpoint when that is written; where the store failed, two seconds later.
  await world.quiet()
  world.clock.advance(2000)
  await world.quiet()
  for (const { id, deleted } of model.endpoints.values()) {
    if (deleted) continue
    await world.posthorn.endpoints.resume("acme", id)
    await world.posthorn.endpoints.update("acme", id, { disabled: false })
  }
  for (let hours = 0; hours < 20; hours++) {
    await world.quiet()
    const { pending, failed } = await world.posthorn.stats()
    if (pending + failed === 0) return
    world.clock.advance(3_600_000)
  }
  expect.fail(
    `still waiting after 20 hours: ${JSON.stringify(await world.rows("status IN ('pending', 'failed')"))}`,
  )
}

async function examine(world: World, model: Model): Promise<void> {
  const rows = await world.rows()
  const messages = await world.messages()
  const attempts = await world.attempts()
  const nameOf = new Map([...model.endpoints].map(([name, { id }]) => [id, name]))
  await world.expectNoPayloadMissing()
  for (const [messageId, { endpoints }] of model.accepted) {
    const mine = rows.filter((row) => row.message_id === messageId)
    const message = messages.find((row) => row.id === messageId)
    if (!model.retention) {
      expect(message, `accepted message ${messageId} is in the store`).toBeDefined()
      expect(mine, "a delivery for every endpoint that matched").toHaveLength(message!.matched as number)
    }
    for (const name of endpoints) {
      const kept = mine.filter((row) => nameOf.get(row.webhook_id as string) === name)
      expect(kept.length).toBeLessThanOrEqual(1)
      // Retention only removes what is finished: what is gone was sent, or called off.
      const calledOff = model.endpoints.get(name)!.deleted || model.touched.has(messageId)
      const sent = world.receipts.some(
        (receipt) => receipt.endpoint === name && receipt.messageId === messageId,
      )
      expect(
        kept.length === 1 || (model.retention && (sent || calledOff)),
        `${messageId} to ${name} is not lost`,
      ).toBe(true)
    }
  }
  for (const row of rows) {
    expect(["delivered", "dead"]).toContain(row.status)
    expect(row.status === "dead", `a dead row has a reason: ${JSON.stringify(row)}`).toBe(
      row.dead_reason !== null,
    )
    const receipts = world.receipts.filter(
      ({ endpoint, messageId }) =>
        endpoint === nameOf.get(row.webhook_id as string) && messageId === row.message_id,
    )
    if (row.status === "delivered")
      expect(
        receipts.some(({ ok }) => ok),
        "what is delivered was received",
      ).toBe(true)
    if (row.dead_reason === "exhausted") expect(receipts.length).toBeGreaterThanOrEqual(3)
    // A cancelled delivery may have a request that still hangs.
    if (!model.touched.has(row.message_id as string) && row.dead_reason !== "cancelled")
      expect(receipts.length, "every request has its attempt").toBeLessThanOrEqual(
        attempts.get(row.id as string) ?? 0,
      )
  }
  const deferred = new Set(messages.filter((one) => one.deliver_at !== null).map(({ id }) => id))
  for (const [name, { ordered }] of model.endpoints)
    if (ordered) examineOrder(world, model, name, rows, deferred)
  // The file is written by the process that crashes; a server's is not.
  if (world.ground.kind === "sqlite")
    expect(await world.ground.sql("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }])
}

/** Leaving out those that an operator touched and those that were deferred, requests came in the order of acceptance. */
function examineOrder(
  world: World,
  model: Model,
  name: string,
  rows: readonly Row[],
  deferred: ReadonlySet<unknown>,
): void {
  const { id } = model.endpoints.get(name)!
  const numbers = new Map(
    rows
      .filter(
        (row) =>
          row.webhook_id === id &&
          !deferred.has(row.message_id) &&
          !model.touched.has(row.message_id as string),
      )
      .map((row) => [row.message_id as string, row.seq as number]),
  )
  const sequence = world.receipts
    .filter(({ endpoint, messageId }) => endpoint === name && numbers.has(messageId))
    .map(({ messageId }) => numbers.get(messageId)!)
  expect(sequence, `requests to the ordered endpoint ${name}`).toEqual([...sequence].sort((a, b) => a - b))
}
