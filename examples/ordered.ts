/** An ordered endpoint keeps its order when the receiver fails. Run it: node examples/ordered.ts */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { json } from "node:stream/consumers"
// An installed program writes: from "posthorn"
import { openPosthorn } from "../src/index.ts"

const STEPS = ["created", "sent", "paid", "archived"]

// A ledger that must get "sent" before "paid". It fails twice on the second step.
const taken: string[] = []
let failures = 0
const ledger = createServer(async (request, response) => {
  const { step } = (await json(request)) as { step: string }
  const fails = step === "sent" && failures++ < 2
  console.log(`${step.padEnd(8)} ${fails ? "HTTP 500" : "HTTP 200"}`)
  if (!fails) taken.push(step)
  response.writeHead(fails ? 500 : 200).end()
})
await once(ledger.listen(0, "127.0.0.1"), "listening")

const posthorn = await openPosthorn({ store: "sqlite::memory:", egress: { allow: ["127.0.0.0/8"] } })
await posthorn.applications.create({ uid: "acme", name: "Acme" })
await posthorn.endpoints.create("acme", {
  url: `http://127.0.0.1:${(ledger.address() as AddressInfo).port}/ledger`,
  // A message is sent only after the one before it is delivered or dead.
  ordered: true,
  retry: { delays: [0.2, 0.4], maxAttempts: 5 },
})

let waiting = STEPS.length
const finished = new Promise<void>((resolve) => {
  posthorn.on("delivery.delivered", () => --waiting === 0 && resolve())
})

// Each send is on disk before the next one: that is the order.
for (const step of STEPS) {
  await posthorn.send("acme", { eventType: `invoice.${step}`, payload: { invoice: "INV-2041", step } })
}
await finished
console.log(`the ledger took: ${taken.join(", ")}`)

await posthorn.close()
ledger.close()
