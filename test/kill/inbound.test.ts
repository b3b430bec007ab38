/** Seed 002's edge gateway is killed while webhooks come in. Providers repeat each of them until it is answered with 202. */
import { expect, test } from "vitest"
import { addressOf, serve } from "../api/support/serving.ts"
import { freshGround } from "../support/combination.ts"
import { Hub } from "../support/hub.ts"
import { rounds } from "../support/length.ts"

const KILLS = rounds(3, 30)
const PROVIDERS = 8
const KEY = "a-key-of-the-operators-own"

test(
  "kill -9 of the server: each webhook that was answered with 202 reaches the hub, once and with that id",
  async () => {
    const { store, schedule } = (await freshGround({ migrated: true })).options
    const environment = {
      POSTHORN_STORE: store!,
      ...(schedule === undefined ? {} : { POSTHORN_SCHEDULE: schedule }),
      POSTHORN_API_KEY: KEY,
      POSTHORN_ENCRYPTION_KEY: "5e".repeat(32),
      POSTHORN_METRICS: "off",
      POSTHORN_LOG_LEVEL: "info",
    }
    let server = serve([], environment)
    let address = addressOf(server)
    const killed = async () => {
      await server.kill()
      server = serve([], environment)
      return addressOf(server)
    }
    const post = async (path: string, body: object): Promise<{ [field: string]: string }> => {
      const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" }
      const url = `${await address}/api/v1${path}`
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
      expect(response.status).toBe(201)
      return (await response.json()) as { [field: string]: string }
    }
    await post("/app", { name: "Home", uid: "home" })
    await post("/app/home/endpoint", { url: "relay://hub", retry: "relay", ordered: false })
    const { token } = await post("/key", { name: "hub", scope: "agent", appId: "home" })
    const source = await post("/app/home/source", {
      ...{ name: "doorbell", verification: "none", rateLimit: 100_000 },
      deduplication: { header: "x-id" },
    })
    const { pathname } = new URL(source.url!)

    const accepted = new Map<number, string>()
    let last = 0
    let isOver = false
    const ring = async (n: number) => {
      const request = { method: "POST", headers: { "x-id": `${n}` }, body: JSON.stringify({ n }) }
      try {
        const response = await fetch((await address) + pathname, request)
        const { id } = (await response.json()) as { id: string }
        if (response.status === 202) accepted.set(n, id)
      } catch {
        // The server was killed: `address` is the next one's.
      }
    }
    const provider = async () => {
      while (!isOver) for (const n = ++last; !accepted.has(n); ) await ring(n)
    }
    const providers = Array.from({ length: PROVIDERS }, provider)
    for (let kill = 0; kill < KILLS; kill++) {
      const enough = accepted.size + 20 + Math.floor(Math.random() * 100)
      await expect.poll(() => accepted.size, { timeout: 20_000, interval: 5 }).toBeGreaterThan(enough)
      address = killed()
      await address
    }
    isOver = true
    await Promise.all(providers)

    const hub = new Hub({ server: await address, key: token! })
    await hub.until(() => hub.settled.size >= accepted.size)
    const came = hub.runs.map(({ n, messageId }) => [n, messageId] as const)
    expect(came.sort(([a], [b]) => a - b)).toEqual([...accepted].sort(([a], [b]) => a - b))
  },
  30_000 * KILLS,
)
