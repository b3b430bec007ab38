/** The official `svix` client against a Posthorn server: only `serverUrl` changes. Run it: node examples/svix-sdk.ts */
import { once } from "node:events"
import { createServer as createHttpServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { Svix, Webhook } from "svix"
import { createServer } from "../src/api/server.ts"
import { openPosthorn } from "../src/index.ts"
import { createLogger } from "../src/observe/log.ts"

// A customer's receiver, built with Svix's library.
let secret = ""
const receiver = createHttpServer(async (request, response) => {
  const body = await text(request)
  new Webhook(secret).verify(body, request.headers as Record<string, string>)
  console.log(`verified: ${JSON.parse(body).invoice}`)
  response.end()
})
receiver.listen(0, "127.0.0.1")
await once(receiver, "listening")

// `posthorn serve` does this for you and prints a key at its first start.
const logger = createLogger("warn")
const egress = { allow: ["127.0.0.0/8"], ports: "any" } as const
const posthorn = await openPosthorn({ store: "sqlite::memory:", egress, logger })
const settings = { logger, maxPayloadBytes: 1_048_576, maxRequests: 1000, closeTimeoutMs: 5000 }
const server = createServer(posthorn, settings)
const serverUrl = await server.listen({ port: 0, host: "127.0.0.1" })
const { token } = await posthorn.keys.create({ name: "example", scope: "admin" })

const svix = new Svix(token, { serverUrl })
const app = await svix.application.create({ name: "Acme", uid: "acme" })
const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
const endpoint = await svix.endpoint.create("acme", { url, eventTypes: ["invoice.paid"] })
secret = (await svix.endpoint.getSecret("acme", endpoint.id)).key
console.log(`application ${app.uid}, endpoint for ${endpoint.eventTypes}`)

const delivered = new Promise((resolve) => posthorn.on("delivery.delivered", resolve))
const message = await svix.message.create("acme", {
  eventType: "invoice.paid",
  payload: { invoice: "INV-2041" },
})
await delivered
const attempts = await svix.messageAttempt.listByMsg("acme", message.id)
console.log(`attempts: ${attempts.data.map(({ statusText }) => statusText)}`)

await svix.application.get("nobody").catch((error) => console.log(`HTTP ${error.code}: ${error.body.detail}`))
await server.close()
receiver.close()
