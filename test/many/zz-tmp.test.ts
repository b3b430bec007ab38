import { appendFileSync } from "node:fs"
import pg from "pg"
import { test, vi } from "vitest"
import { ON_SHARED_SERVERS, open, Site } from "./site.ts"
const pass = (ms: number) => new Promise((r) => setTimeout(r, ms))
test.each(ON_SHARED_SERVERS)("x %s", async (name, place) => {
  const there = await place()
  const worker = await open(there)
  await pass(4500)
  const spy = vi.spyOn(pg.Client.prototype, "query")
  const log = (what: string) => { const t: Record<string, number> = {}; for (const [q] of spy.mock.calls as any) { const k = (typeof q === "string" ? q : q.name || q.text).trim().slice(0, 40); t[k] = (t[k] ?? 0) + 1 }; appendFileSync("/tmp/cost.log", `${name} ${what} ${spy.mock.calls.length} ${JSON.stringify(t)}\n`); spy.mockClear() }
  await pass(10_000); log("idle")
  const site = await Site.open(there)
  const uids = Array.from({ length: 50 }, (_, i) => `endpoint-${i}`)
  for (const uid of uids) await site.endpoint(uid)
  const settled = (count: number) => new Promise<void>((resolve) => { let left = count; const stop = worker.on("delivery.delivered", () => { if (--left > 0) return; stop(); resolve() }) })
  const warm = settled(50); await Promise.all(uids.map((u) => site.send(u))); await warm
  spy.mockClear()
  const all = settled(3000); let next = 0
  const sendOn = async () => { while (next < 3000) await site.send(uids[next++ % 50]!) }
  await Promise.all(Array.from({ length: 500 }, sendOn)); await all; log("busy")
  spy.mockRestore()
}, 60_000)
