/** One application whose agents take all of its places, over real WebSockets. */
import { once } from "node:events"
import { expect, onTestFinished, test } from "vitest"
import { WebSocket } from "ws"
import { MOST_OF_APPLICATION } from "../../src/api/agent-places.ts"
import { RELAY_PATH, RELAY_PROTOCOL } from "../../src/core/relay-protocol.ts"
import { ApiServer } from "./support/server.ts"

test("an application that takes all of its places keeps no other application out", {
  timeout: 120_000,
}, async () => {
  const { posthorn, url } = await ApiServer.start()
  const keyOf = async (uid: string) => {
    await posthorn.applications.create({ uid, name: uid })
    return (await posthorn.keys.create({ name: uid, scope: "agent", appId: uid })).token
  }
  const connect = (key: string) => {
    const headers = { authorization: `Bearer ${key}` }
    const socket = new WebSocket(`${url}${RELAY_PATH}`, RELAY_PROTOCOL, { headers })
    onTestFinished(() => socket.on("error", () => {}).terminate())
    return socket
  }
  const [greedy, other] = [await keyOf("greedy"), await keyOf("other")]
  // In groups: the queue of new connections is short.
  for (let open = 0; open < MOST_OF_APPLICATION; open += 100) {
    const group = Array.from({ length: 100 }, () => connect(greedy))
    await Promise.all(group.map((socket) => once(socket, "open")))
  }
  const [, refusal] = await once(connect(greedy), "unexpected-response")
  expect(refusal.statusCode).toBe(503)
  await once(connect(other), "open")
})
