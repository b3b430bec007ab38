/** Receivers that close idle connections without a word, as uvicorn does: a delivery that meets the close is not a failed one. */
import type { Socket } from "node:net"
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

/** Ends every connection when its second request comes, unread and without an answer. */
function closesIdleConnections(harness: Harness): void {
  const used = new Set<Socket>()
  harness.receiver.always("/", (_request, response) => {
    const socket = response.socket!
    if (used.has(socket)) return void socket.destroy()
    used.add(socket)
    response.end("ok")
  })
}

test.each([
  true,
  false,
])("no attempt is lost to a connection that its receiver closes (ordered: %s)", async (ordered) => {
  const harness = await Harness.start()
  closesIdleConnections(harness)
  await harness.endpoint({ ordered })
  const ids: string[] = []
  for (let sent = 1; sent <= 4; sent++) {
    ids.push(await harness.send({ sent }))
    await harness.published("delivery.delivered", sent)
    await harness.quiet()
  }
  const [first, ...others] = ids
  // The first had a fresh connection. Each of the others met the end of the one before, and was sent again with the same id.
  expect(harness.receiver.to("/").map(({ id }) => id)).toEqual([first, ...others.flatMap((id) => [id, id])])
  expect((await harness.rows()).map(({ attempt_count }) => attempt_count)).toEqual([1, 1, 1, 1])
  expect(harness.events.filter(({ type }) => type === "delivery.attempt")).toHaveLength(4)
})
