// A receiver that is fast enough not to be the limit: a bare net server in a process of its own that counts requests without parsing them.
import { createServer } from "node:net"

const RESPONSE = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
const END_OF_HEAD = Buffer.from("\r\n\r\n")
const LENGTH = Buffer.from("content-length: ")

let received = 0
let target = Number.POSITIVE_INFINITY

const server = createServer((socket) => {
  socket.setNoDelay(true)
  let rest = Buffer.alloc(0)
  socket.on("error", () => {})
  socket.on("data", (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let answers = 0
    for (;;) {
      const head = rest.indexOf(END_OF_HEAD)
      if (head === -1) break
      const at = rest.indexOf(LENGTH)
      const length =
        at === -1 || at > head ? 0 : Number(rest.toString("latin1", at + LENGTH.length, rest.indexOf(13, at)))
      const end = head + END_OF_HEAD.length + length
      if (rest.length < end) break
      rest = rest.subarray(end)
      answers++
    }
    if (answers === 0) return
    received += answers
    socket.write(answers === 1 ? RESPONSE : Buffer.concat(Array(answers).fill(RESPONSE)))
    if (received >= target) {
      process.send({ reached: received })
      target = Number.POSITIVE_INFINITY
    }
  })
})

server.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }))
process.on("message", (message) => {
  if (message.target !== undefined) {
    received = 0
    target = message.target
    process.send({ armed: true })
  } else {
    process.send({ received })
  }
})
process.on("disconnect", () => process.exit(0))
