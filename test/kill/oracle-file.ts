/** What must hold of every file that a crash leaves behind. */
import assert from "node:assert/strict"
import { ORDERED, PLAIN } from "./ledger.ts"
import { type AcceptedMessage, type MessageRow, withFile } from "./rows.ts"

export function checkFile(file: string, accepted: ReadonlyMap<string, AcceptedMessage>): void {
  withFile(file, (all) => {
    assert.deepEqual(
      all<{ integrity_check: string }>("PRAGMA integrity_check").map((row) => row.integrity_check),
      ["ok"],
      "the file is damaged",
    )
    // Killed before the first table was there: then nothing can have been accepted.
    const hasTables = all("SELECT 1 FROM sqlite_schema WHERE name = 'messages'").length > 0
    checkMessages(hasTables ? all("SELECT id, payload FROM messages ORDER BY seq") : [], accepted)
    if (!hasTables) return
    assert.deepEqual(
      all(`
        SELECT m.id FROM messages m
         WHERE matched <> iif(event_type = 'burst.ordered', ${PLAIN.length + ORDERED.length}, ${PLAIN.length})
            OR matched <> (SELECT count(*) FROM webhook_deliveries d WHERE d.message_id = m.id)`),
      [],
      "messages without all of their deliveries",
    )
    assert.deepEqual(
      all("SELECT id FROM webhook_deliveries WHERE message_id NOT IN (SELECT id FROM messages)"),
      [],
      "deliveries without their message",
    )
  })
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
  assert.deepEqual(missing, [], "accepted messages are missing from the file")
}
