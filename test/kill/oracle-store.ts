/** Invariants of the data that a crash leaves behind. */
import assert from "node:assert/strict"
import type { Ground, Row } from "../support/ground.ts"
import { ORDERED, PLAIN } from "./ledger.ts"
import type { AcceptedMessage, MessageRow } from "./rows.ts"

export async function checkStore(
  ground: Ground,
  accepted: ReadonlyMap<string, AcceptedMessage>,
): Promise<void> {
  // Only a killed process's own file: a server's files are the server's.
  if (ground.kind === "sqlite")
    await expectNone(
      ground,
      "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
      "the file is damaged",
    )
  // Killed before the first table was there: then nothing can have been accepted.
  const hasTables = await ground.hasTables()
  const messages = hasTables ? await ground.sql("SELECT id, payload FROM messages ORDER BY seq") : []
  checkMessages(messages as unknown as MessageRow[], accepted)
  if (!hasTables) return
  await expectNone(
    ground,
    `
    SELECT m.id FROM messages m
     WHERE matched <> CASE event_type WHEN 'burst.ordered' THEN ${PLAIN.length + ORDERED.length} ELSE ${PLAIN.length} END
        OR matched <> (SELECT count(*) FROM webhook_deliveries d WHERE d.message_id = m.id)`,
    "messages without all of their deliveries",
  )
  await expectNone(
    ground,
    "SELECT id FROM webhook_deliveries WHERE message_id NOT IN (SELECT id FROM messages)",
    "deliveries without their message",
  )
}

async function expectNone(ground: Ground, sql: string, problem: string): Promise<void> {
  assert.deepEqual<Row[]>(await ground.sql(sql), [], problem)
}

/** All that was accepted is there, once, under its id, and each sender's messages in the order in which it sent them. */
function checkMessages(
  messages: readonly MessageRow[],
  accepted: ReadonlyMap<string, AcceptedMessage>,
): void {
  const next = new Map<number, number>()
  const found = new Set<string>()
  for (const { id, payload } of messages) {
    const { sender, n } = JSON.parse(Buffer.from(payload).toString()) as AcceptedMessage
    // A second message under one idempotency key would be a number twice.
    assert.equal(n, next.get(sender) ?? 0, `sender ${sender}'s messages are not once each and in order`)
    next.set(sender, n + 1)
    found.add(id)
    const known = accepted.get(id)
    if (known !== undefined) assert.deepEqual({ sender, n }, known, `message ${id} is not the one accepted`)
  }
  const missing = [...accepted.keys()].filter((id) => !found.has(id))
  assert.deepEqual(missing, [], "accepted messages are missing from the store")
}
