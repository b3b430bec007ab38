import { PassThrough } from "node:stream"
import { expect, test } from "vitest"
import { AgentPlaces, MOST_CONNECTIONS, MOST_OF_APPLICATION } from "./agent-places.ts"

const closed = (socket: PassThrough) => new Promise((resolve) => socket.once("close", resolve).destroy())

test("one application fills its own places, and each socket that closes frees one", async () => {
  const places = new AgentPlaces()
  const sockets = Array.from({ length: MOST_OF_APPLICATION }, () => new PassThrough())
  for (const socket of sockets) places.takeOf("app_1", socket)
  const refused = new PassThrough()
  expect(() => places.takeOf("app_1", refused)).toThrow("too many agents of this application are connected")
  places.takeOf("app_2", new PassThrough())
  // A refused socket holds a place until it closes, too.
  await Promise.all([closed(refused), closed(sockets[0]!)])
  places.takeOf("app_1", new PassThrough())
  expect(() => places.takeOf("app_1", new PassThrough())).toThrow(/^too many/)
})

test("all connections together have a limit", async () => {
  const places = new AgentPlaces()
  const sockets = Array.from({ length: MOST_CONNECTIONS }, () => new PassThrough())
  for (const socket of sockets) places.take(socket)
  const refused = new PassThrough()
  expect(() => places.take(refused)).toThrow("too many agents are connected; try again")
  await Promise.all([closed(refused), closed(sockets[0]!)])
  places.take(new PassThrough())
})
