/** Agents as somebody lists them. */
import { expect, test } from "vitest"
import { TestAgent } from "../support/test-agent.ts"
import { onTerminal } from "./terminal.ts"
import { World } from "./world.ts"

const PATIENCE = { timeout: 60_000 }
const LONG_NAME = "a".repeat(63)

async function start() {
  const world = await World.start()
  const { posthorn } = world.server
  for (const name of ["hub", "other", LONG_NAME])
    await posthorn.endpoints.create("acme", { url: `relay://${name}`, eventTypes: ["none"] })
  await TestAgent.joinAt(posthorn, { version: "my-agent/7.1.12 (home hub)" })
  const other = await TestAgent.joinAt(posthorn, { agent: "other", version: "2" })
  other.cut()
  await expect.poll(async () => (await posthorn.agents.get("acme", "other")).connected).toBe(false)
  const type = async (...args: string[]) => {
    const { code, stdout, stderr } = await world.desk.posthorn(["agents", ...args])
    expect([code, stderr]).toEqual([0, ""])
    return stdout.trimEnd().split("\n")
  }
  return { world, type }
}

test("the agents of an application, and of all", PATIENCE, async () => {
  const { world, type } = await start()
  const [head, ...rows] = await type("list", "acme")
  expect(head).toMatch(/^NAME +STATE +SINCE +VERSION +IN FLIGHT +ENDPOINTS$/)
  expect(rows).toEqual([
    expect.stringMatching(/^a{63} +never seen +– +– +0 +1$/),
    expect.stringMatching(/^hub +connected +\d{4}-\S+Z +my-agent\/7.1.12 \(home hub\) +0 +1$/),
    expect.stringMatching(/^other +absent +\d{4}-\S+Z +2 +0 +1$/),
  ])
  expect((await type("list"))[0]).toMatch(/^APP +NAME /)
  const { stdout } = await world.desk.posthorn(["agents", "list", "--json"])
  expect(JSON.parse(stdout)).toMatchObject({
    data: [{ name: LONG_NAME }, { name: "hub" }, { name: "other" }],
  })
})

test("the list fits 80 characters", PATIENCE, async () => {
  const { world } = await start()
  const { stdout } = await world.desk.type(onTerminal("posthorn agents list", 80), {
    environment: { NO_COLOR: "1" },
  })
  const lines = stdout.trimEnd().split("\r\n")
  expect(lines.length).toBeGreaterThan(3)
  for (const line of lines) expect([...line].length, line).toBeLessThanOrEqual(80)
})

test("one agent, line by line", PATIENCE, async () => {
  const { type } = await start()
  const text = (await type("show", "acme", "hub")).join("\n")
  expect(text).toMatch(/^name +hub$/m)
  expect(text).toMatch(/^connected +yes$/m)
  expect(text).toMatch(/^endpoints +ep_\w{27}$/m)
})
