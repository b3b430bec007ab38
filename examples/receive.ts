/** A receiver that verifies the raw body and processes each event once. Run it: node examples/receive.ts */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"
// An installed program writes: from "posthorn"
import { openPosthorn, verifySignature } from "../src/index.ts"

// The secret that the sender shows you for your endpoint.
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

/** Your program has a table with a unique webhook_id instead, written in the same transaction as the work. */
const seen = new Set<string>()

const server = createServer(async (request, response) => {
  let body: Buffer
  try {
    // Rejects when the sender goes away: an error that nobody catches would end the program.
    body = await buffer(request)
    // The signature covers the exact bytes: parse the body after it is verified.
    verifySignature(SECRET, request.headers, body)
  } catch (error) {
    console.log(`refused: ${(error as Error).message}`)
    return response.writeHead(401).end()
  }
  // A retry has the same id. The sender delivers at least once; with this check, the event is processed exactly once.
  const id = String(request.headers["webhook-id"])
  if (seen.has(id)) {
    console.log("known already, not taken again")
    return response.writeHead(200).end()
  }
  seen.add(id)
  const { invoice } = JSON.parse(body.toString()) as { invoice: string }
  console.log(`taken: ${invoice}`)
  // As if the response were lost after the work was done: the sender tries again.
  response.writeHead(500).end()
})
await once(server.listen(0, "127.0.0.1"), "listening")
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`

// A request without the secret, and then the real sender.
const headers = {
  "webhook-id": "msg_forged",
  "webhook-timestamp": String(Math.floor(Date.now() / 1000)),
  "webhook-signature": "v1,bm90IHRoZSBzZWNyZXQ=",
}
const forged = await fetch(url, { method: "POST", headers, body: '{"invoice":"INV-0"}' })
console.log(`the forger got HTTP ${forged.status}`)

const posthorn = await openPosthorn({ store: "sqlite::memory:", egress: { allow: ["127.0.0.0/8"] } })
await posthorn.applications.create({ uid: "acme", name: "Acme" })
await posthorn.endpoints.create("acme", { url, secret: SECRET, retry: { delays: [0.2], maxAttempts: 3 } })
const delivered = new Promise((resolve) => posthorn.on("delivery.delivered", resolve))
await posthorn.send("acme", { eventType: "invoice.paid", payload: { invoice: "INV-2041" } })
await delivered
console.log(`delivered; events taken: ${seen.size}`)

await posthorn.close()
server.close()
