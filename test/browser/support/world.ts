/** A store as an operator may find it: customers, endpoints that fail in many ways, dead letters, sources, agents, alerts. */
import { createHmac } from "node:crypto"
import { setTimeout as delay } from "node:timers/promises"
import { connectAgent } from "../../../src/agent/agent.ts"
import type { Posthorn } from "../../../src/posthorn.ts"
import type { EndpointInput } from "../../../src/resources/endpoints.ts"
import type { Receiver } from "../../support/receiver.ts"
import { freePort } from "../../support/servers/port.ts"
import type { Site, SiteOptions } from "./site.ts"

/** Once, and given up. */
const ONCE = { delays: [1], maxAttempts: 1, breaker: false } as const
/** Its failures wait for an hour. */
const PATIENT = { delays: [3600, 7200, 14_400], maxAttempts: 4, breaker: false } as const
const SECRET = "s3cret"
const HOUR_MS = 3_600_000

const INVOICE = {
  type: "object",
  properties: { invoice: { type: "integer" }, amount: { type: "integer" } },
  examples: [{ invoice: 17, amount: 2900 }],
}

/** By uid: how the receiver answers, and the endpoint. Endpoints without an answer get 200. */
const ENDPOINTS: { readonly [uid: string]: Partial<EndpointInput> & { readonly answers?: number } } = {
  healthy: { description: "Billing", eventTypes: ["invoice.paid", "invoice.refunded"] },
  rejecting: { answers: 500, retry: ONCE, description: "Warehouse" },
  waiting: { answers: 503, retry: "patient", description: "CRM" },
  gone: { answers: 410 },
  limited: { answers: 429, retry: PATIENT },
  ordered: { answers: 500, ordered: true, retry: PATIENT },
  paused: { eventTypes: ["user.created"] },
  tripped: { eventTypes: ["user.created"] },
  disabled: { disabled: true },
}

export const WORLD: SiteOptions = { fill: fillWorld, after: joinAgent }

/** The agent named hub, and a task that replays. */
async function joinAgent(site: Site): Promise<void> {
  const { token: key } = await site.call("POST", "/key", { name: "hub", scope: "agent", appId: "acme" })
  const agent = connectAgent({
    server: site.url,
    key,
    name: "hub",
    logger: "silent",
    handle: () => "success",
  })
  site.whenClosed(() => agent.close())
  await site.call("POST", "/app/acme/endpoint/rejecting/recover", { since: new Date(Date.now() - HOUR_MS) })
}

export async function fillWorld(posthorn: Posthorn, receiver: Receiver): Promise<void> {
  await fillCatalogue(posthorn)
  await createEndpoints(posthorn, receiver)
  await sendMessages(posthorn)
  await receiveWebhooks(posthorn)
  await raiseAlert(posthorn)
}

async function fillCatalogue({ applications, eventTypes, policies, keys, alertChannels }: Posthorn) {
  await applications.create({ uid: "acme", name: "Acme Robotics", metadata: { tier: "gold" } })
  await applications.create({ uid: "globex", name: "Globex" })
  await applications.create({ uid: "initech", name: "Initech" })
  const types = { "invoice.paid": "Paid", "invoice.refunded": "Refunded", "user.created": "Signed up" }
  for (const [name, description] of Object.entries(types))
    await eventTypes.create({ name, description, schemas: { 1: INVOICE } })
  await policies.put("patient", PATIENT)
  await keys.create({ name: "reports", scope: "read" })
  await keys.create({ name: "customer", scope: "application", appId: "globex" })
  await alertChannels.put("ops", { kind: "webhook", url: "http://127.0.0.1:9/alerts" })
}

async function createEndpoints({ endpoints }: Posthorn, receiver: Receiver): Promise<void> {
  for (const [uid, { answers = 200, ...input }] of Object.entries(ENDPOINTS)) {
    receiver.always(`/${uid}`, answers)
    await endpoints.create("acme", { uid, url: receiver.url(`/${uid}`), ...input })
  }
  receiver.always("/limited", (_request, response) => {
    response.writeHead(429, { "retry-after": "3600" }).end("slow down")
  })
  receiver.always("/hangs-up", (_request, response) => void response.destroy())
  const create = (uid: string, url: string, more: Partial<EndpointInput> = {}) =>
    endpoints.create("acme", { uid, url, retry: PATIENT, ...more })
  await create("hangs-up", receiver.url("/hangs-up"))
  await create("refused", `http://127.0.0.1:${await freePort()}/`)
  await create("no-tls", receiver.url("/no-tls").replace("http:", "https:"))
  await create("hub", "relay://hub", { eventTypes: ["user.created", "inbound.github"] })
  await create("absent", "relay://absent", { eventTypes: ["user.created"] })
  await endpoints.pause("acme", "paused")
  await endpoints.trip("acme", "tripped")
  receiver.always("/globex", 200)
  await endpoints.create("globex", { uid: "main", url: receiver.url("/globex") })
}

async function sendMessages(posthorn: Posthorn): Promise<void> {
  const types = ["invoice.paid", "invoice.refunded", "user.created"]
  const messages = Array.from({ length: 12 }, (_, n) => ({
    eventType: types[n % types.length]!,
    payload: { invoice: n, amount: 2900, account: "9007199254740993" },
    tags: ["demo"],
  }))
  await posthorn.sendBatch("acme", messages)
  await posthorn.sendBatch("globex", messages)
  await posthorn.send("acme", { eventType: "invoice.paid", payload: { invoice: 17 }, eventId: "invoice-17" })
  await posthorn.send("acme", { eventType: "invoice.paid", payload: { later: true }, delaySeconds: 3600 })
  await untilSettled(posthorn)
}

/** Resolves when no delivery can be sent now. */
export async function untilSettled({ deliveries }: Posthorn): Promise<void> {
  const isBusy = async () => {
    const { data } = await deliveries.list({ status: "pending", limit: 250 })
    return data.some(({ waitReason }) => waitReason === "due" || waitReason === "sending")
  }
  while (await isBusy()) await delay(20)
}

/** Two requests are accepted, and two refused. */
async function receiveWebhooks({ sources }: Posthorn): Promise<void> {
  const { token } = await sources.create("acme", {
    name: "github",
    verification: "github",
    secret: SECRET,
  })
  for (const [n, secret] of [SECRET, SECRET, "wrong", "wrong"].entries()) {
    const body = JSON.stringify({ action: "opened", number: n })
    const signature = createHmac("sha256", secret).update(body).digest("hex")
    const headers = {
      "content-type": "application/json",
      "x-github-event": "pull_request",
      "x-github-delivery": `delivery-${n}`,
      "x-hub-signature-256": `sha256=${signature}`,
    }
    await sources.receive(token, { method: "POST", headers, body, remoteAddress: "192.0.2.7" })
  }
}

/** The rule holds in two evaluations. */
async function raiseAlert({ alerts, monitor }: Posthorn): Promise<void> {
  await alerts.rules.put("dead-letters-count", { count: 1 })
  await alerts.silences.create({ rule: "retry-share", until: Date.now() + HOUR_MS, reason: "load test" })
  for (let i = 0; i < 2; i++) await monitor!.runOnce()
}
