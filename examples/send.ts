/** A small shop that tells a customer when an invoice is paid. Run it: node examples/send.ts */
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
// An installed program writes: from "posthorn"
import { openPosthorn } from "../src/index.ts"

// The customer's server, which fails on the first request.
let requests = 0
const customer = createServer((request, response) => {
  request.resume().on("end", () => response.writeHead(++requests === 1 ? 503 : 200).end())
})
await once(customer.listen(0, "127.0.0.1"), "listening")
const url = `http://127.0.0.1:${(customer.address() as AddressInfo).port}/webhooks`

// Your program keeps its file: store: "sqlite:posthorn.db".
const folder = mkdtempSync(join(tmpdir(), "posthorn-send-"))
const posthorn = await openPosthorn({
  store: `sqlite:${join(folder, "posthorn.db")}`,
  // The receiver of this example is on this machine. By default webhooks go to public addresses only.
  egress: { allow: ["127.0.0.0/8"] },
})

await posthorn.applications.create({ uid: "acme", name: "Acme" })
await posthorn.endpoints.create("acme", {
  url,
  eventTypes: ["invoice.paid"],
  retry: { delays: [0.2, 1, 5], maxAttempts: 4 },
})

posthorn.on("delivery.attempt", ({ attempt_count, response_status }) => {
  console.log(`attempt ${attempt_count}: HTTP ${response_status}`)
})
posthorn.on("delivery.dead", ({ reason }) => console.log(`given up: ${reason}`))
const delivered = new Promise((resolve) => posthorn.on("delivery.delivered", resolve))

const message = {
  eventType: "invoice.paid",
  payload: { invoice: "INV-2041", total: 12_900, currency: "EUR" },
  idempotencyKey: "INV-2041-paid",
}
// Resolves when the message is on disk. Posthorn then delivers it, also after a restart.
const { id, matched } = await posthorn.send("acme", message)
console.log(`accepted for ${matched} endpoint`)

// Not sure whether a send succeeded? Send it again: the same key is the same message.
const again = await posthorn.send("acme", message)
console.log(`sent twice, accepted once: ${again.duplicate && again.id === id}`)

await delivered
const stats = await posthorn.stats("acme")
console.log(`delivered ${stats.delivered}, waiting ${stats.pending + stats.failed}, dead ${stats.dead}`)

await posthorn.close()
customer.close()
rmSync(folder, { recursive: true })
