/** A place whose PostgreSQL is reached through a proxy that a test can break. */
import { onTestFinished } from "vitest"
import { FaultProxy } from "../support/fault-proxy.ts"
import type { Place } from "./site.ts"

export async function proxied(place: Place): Promise<{ readonly proxy: FaultProxy; readonly place: Place }> {
  const { hostname, port } = new URL(place.store)
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) })
  onTestFinished(() => proxy.close())
  return { proxy, place: { ...place, store: proxy.through(place.store) } }
}
