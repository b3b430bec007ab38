/** `posthorn changes`: changes and their callers, also on a store without a server. */
import { expect, test } from "vitest"
import { Desk } from "./posthorn.ts"
import { World } from "./world.ts"

test("changes are listed with their caller, of a server", async () => {
  const { server, desk } = await World.start()
  await desk.posthorn(["endpoints", "pause", "acme", "main"])
  const { stdout } = await desk.posthorn(["changes", "--app", "acme", "--endpoint", "main", "--limit", "1"])
  const { id, appId } = await server.posthorn.endpoints.get("acme", "main")
  expect(stdout).toMatch(/^AT +ACTION +BY +APP +SUBJECT +DETAIL/m)
  expect(stdout).toMatch(new RegExp(`endpoint\\.pause +test \\(key\\) +${appId} +${id}`))
})

test("a change that was made on the store itself is recorded before the command ends", async () => {
  const desk = new Desk()
  expect((await desk.posthorn(["changes"])).code).toBe(1)
  await desk.posthorn(["apps", "create", "Acme", "--uid", "acme"])
  const { stdout } = await desk.posthorn(["changes", "--json"])
  expect(JSON.parse(stdout).data).toMatchObject([
    {
      action: "application.create",
      by: { kind: "local", id: null, name: "command line" },
      detail: "name, uid",
    },
  ])
})
