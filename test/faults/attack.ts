/** A hostile receiver, and a transport with requests to it, for one test. */
import { onTestFinished } from "vitest"
import { systemClock } from "../../src/core/clock.ts"
import { HttpTransport } from "../../src/transport/http.ts"
import { loopbackGuard } from "../support/harness.ts"
import { Hostile } from "../support/hostile.ts"

export async function hostile(): Promise<Hostile> {
  const started = await Hostile.start()
  onTestFinished(() => started.close())
  return started
}

export function transport(): HttpTransport {
  const clock = systemClock()
  const made = new HttpTransport(clock, loopbackGuard(clock))
  onTestFinished(() => made.close())
  return made
}

export const request = (url: string, endpointId = "ep_1", timeoutMs = 10_000) => ({
  endpointId,
  version: 1,
  url,
  headers: { "content-type": "text/plain" },
  body: Buffer.from("hello"),
  timeoutMs,
  connectTimeoutMs: 10_000,
  tls: {},
})
