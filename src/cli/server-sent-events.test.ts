import { expect, test } from "vitest"
import { serverSentEvents } from "./server-sent-events.ts"

async function* inPieces(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

test.each([1, 3, 7, 1000])("events are the same in pieces of %i bytes", async (size) => {
  const text =
    'retry: 2000\nid: a-1-0\n\n: heartbeat\n\nid: a-1-1\nevent: gap\ndata: {"a":\ndata: "ü"}\n\ndata:x\r\n\r\nid: a-1-2\ndata: half'
  const found = await Array.fromAsync(serverSentEvents(inPieces(text, size)))
  expect(found.filter(({ event }) => event !== null)).toEqual([
    { id: "a-1-1", event: { kind: "gap", data: '{"a":\n"ü"}' } },
    { id: "a-1-1", event: { kind: "message", data: "x" } },
  ])
  expect(found[0]).toEqual({ id: "a-1-0", event: null })
})
