/** A process that cannot hold agents: on SQLite only the delivering process can. On PostgreSQL: test/multi-process/relay.test.ts. */
import { expect, onTestFinished, test } from "vitest"
import { connectAgent } from "../../src/index.ts"
import { ApiServer } from "./support/server.ts"

test("on SQLite a server that does not deliver refuses agents with a sentence, and no other try is made", async () => {
  const { posthorn, url } = await ApiServer.start({ options: { deliver: false, metrics: true } })
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const { token: key } = await posthorn.keys.create({ name: "hub", scope: "agent", appId: "acme" })
  const agent = connectAgent({ server: url, key, name: "hub", handle: () => "success", logger: "silent" })
  onTestFinished(() => agent.close())
  expect(await agent.closed).toMatchObject({
    code: "agent_refused",
    message: expect.stringMatching(
      /refuses agents: this process does not deliver, and on SQLite only the process that delivers can hold agents: connect to its server$/,
    ),
  })
  expect(await posthorn.registry!.metrics()).toContain(
    'posthorn_relay_connections_total{result="refused_elsewhere"} 1',
  )
})
