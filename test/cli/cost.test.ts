/** `posthorn cost` as somebody types it. */
import { expect, test } from "vitest"
import { World } from "./world.ts"

const PATIENCE = { timeout: 60_000 }

/** A delivery that was delivered, and a dead letter. */
async function start() {
  const world = await World.start()
  await world.deadLetter()
  const { posthorn } = world.server
  await expect.poll(async () => (await posthorn.cost.report()).total.attempts).toBe(2)
  const show = async (...args: string[]) => {
    const { code, stdout, stderr } = await world.desk.posthorn(["cost", ...args])
    expect([code, stderr]).toEqual([0, ""])
    return stdout.trimEnd().split("\n")
  }
  return { world, show }
}

test("the total, and the yield of each attempt", PATIENCE, async () => {
  const { show } = await start()
  const text = (await show()).join("\n")
  expect(text).toMatch(/^attempts +2$/m)
  expect(text).toMatch(/^attempts for each delivered +2\.00$/m)
  expect(text).toMatch(/^wasted attempts +50 %$/m)
  expect(text).toMatch(/^retries that delivered +–$/m)
  expect(text).toMatch(/^bytes out +14 B$/m)
  expect(text).not.toMatch(/^price/m)
  expect(text).toMatch(/^ATTEMPT +ATTEMPTS +DELIVERED +SUCCEEDED +OF COST +OF DELIVERED$/m)
  expect(text).toMatch(/^ +1 +2 +1 +50 % +100 % +100 %$/m)
})

test("groups, the failing endpoints, and a what-if", PATIENCE, async () => {
  const { show } = await start()
  const [head, ...rows] = await show("--by", "event-type")
  expect(head).toMatch(/^EVENT TYPE +ATTEMPTS +DELIVERED +DEAD +EACH +WASTED +RETRIES OK +OUT +SLOTS$/)
  expect(rows.map((row) => row.split(/ +/, 4)).toSorted()).toEqual([
    ["fails", "1", "0", "1"],
    ["invoice.paid", "1", "1", "0"],
  ])
  const [failing, down, ...others] = await show("--failing")
  expect(failing).toMatch(/^ENDPOINT .* HEALTH +WHY$/)
  expect(down).toMatch(/^down +1 +0 +1 .* degraded +0 % of 1 attempt .* HTTP 500$/)
  expect(others).toEqual([])
  expect((await show("--app", "acme", "--endpoint", "main", "--max-attempts", "1")).at(-1)).toBe(
    "stop after 1 attempt: 0 % attempts, 0 of 1 lost",
  )
  expect(JSON.parse((await show("--by", "policy", "--json")).join("\n"))).toMatchObject({
    total: { attempts: 2 },
    groups: { length: 2 },
  })
})

test(
  "a what-if that cannot be told, and an endpoint without its application, are refused",
  PATIENCE,
  async () => {
    const { world } = await start()
    const refused = async (...args: string[]) => (await world.desk.posthorn(["cost", ...args])).stderr
    expect(await refused("--max-attempts", "6")).toMatch(/must be at most 1: no delivery had more attempts/)
    expect(await refused("--endpoint", "main")).toMatch(/--app is missing/)
  },
)
