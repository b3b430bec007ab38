import { createServer } from "node:net"
import { Gauge } from "@prometheus-io/client"
import { pino } from "pino"
import { expect, test } from "vitest"
import { Harness } from "../../test/support/harness.ts"
import { freePort } from "../../test/support/servers/port.ts"
import { loadConfig } from "../config.ts"
import { listenForScrapes } from "./metrics-listener.ts"

test("a failure to register the metrics of the process leaves no listener behind", async () => {
  const { posthorn } = await Harness.start({ metrics: true })
  const taken = new Gauge({ name: "process_start_time_seconds", help: "taken", registers: [] })
  posthorn.registry!.registerMetric(taken)
  const port = await freePort()
  const config = loadConfig({ flags: {}, environment: { POSTHORN_METRICS: `127.0.0.1:${port}` } })
  await expect(listenForScrapes(posthorn, config, pino({ level: "silent" }))).rejects.toThrow(
    /metrics cannot be offered/,
  )
  const again = createServer()
  await new Promise<void>((resolve, reject) => {
    again.once("error", reject).listen(port, "127.0.0.1", resolve)
  })
  again.close()
})
