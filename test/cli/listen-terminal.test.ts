/** `posthorn listen` and `posthorn agent` in a real terminal: what is on the screen, and what the keys do. */
import { expect, onTestFinished, test } from "vitest"
import { FaultProxy } from "../support/fault-proxy.ts"
import { Receiver } from "../support/receiver.ts"
import { freePort } from "../support/servers/port.ts"
import { ListenWorld } from "./listening.ts"

const PATIENCE = { timeout: 120_000 }
const KEYS = /^j k select · r send again · p print · q end$/m

/** A terminal that is wide enough for the URL in one line. */
async function onScreen(world: ListenWorld, columns = 120, rows = 24) {
  const screen = world.desk.onScreen(["listen", "--forward", world.forward], { columns, rows })
  const shown = await screen.shows(/^Waiting for webhooks\.\nj k select/m)
  // The URL may be broken between two lines.
  const url = /^(http\S+\/in\/[\s\S]+?)\nWebhooks to/m.exec(shown)![1]!.replaceAll("\n", "")
  return { screen, url }
}

const rowsOf = (screen: string) => screen.split("\n").filter((line) => /^[> ] {2}\d\d:\d\d:\d\d/.test(line))

test("webhooks are rows of a table, keys select, print and send again, and q ends it", PATIENCE, async () => {
  const world = await ListenWorld.start()
  world.local.queue("/second", 500, 200)
  const { screen, url } = await onScreen(world)
  await fetch(`${url}/first?secret=1`, { method: "POST", body: "hello", headers: { "X-Kind": "a" } })
  await screen.shows(/POST \/first +inbound +200 /)
  await fetch(`${url}/second`, { method: "PUT", body: "{}" })
  const two = await screen.shows(/^> {2}\S+ {2}PUT \/second +inbound +200 +\d+ +2$/m)
  expect(two).not.toContain("secret")
  expect(rowsOf(two)).toEqual([
    expect.stringMatching(/^ {3}\d\d:\d\d:\d\d {2}POST \/first +inbound +200 +\d+ +1$/),
    expect.stringMatching(/^> /),
  ])
  screen.press("Up")
  await screen.shows(/^> {2}\S+ {2}POST \/first /m)
  screen.press("p")
  const printed = await screen.shows(
    /^POST \/first\?secret=1$[\s\S]*^X-Kind: a$[\s\S]*^hello$[\s\S]*j k select/m,
  )
  expect(printed.indexOf("hello")).toBeLessThan(printed.indexOf("TIME"))
  screen.press("r")
  const again = await screen.shows(/(POST \/first +inbound +200[\s\S]*){2}/)
  expect(rowsOf(again)).toHaveLength(3)
  expect(world.local.to("/first?secret=1")).toHaveLength(2)
  screen.press("q")
  expect(await screen.ended()).toBe(0)
  expect(screen.screen).toMatch(KEYS)
  expect(await world.left()).toEqual([])
})

test("80 columns and 60 are enough, and a new size is drawn anew", PATIENCE, async () => {
  const world = await ListenWorld.start()
  const { screen, url } = await onScreen(world, 80)
  for (let n = 1; n <= 30; n++) await fetch(`${url}/${n}/a/path/that/is/long/enough/to/be/cut`)
  const wide = await screen.shows(
    /(^ {3}\S+ {2}GET \S+… +inbound +200 +\d+ +1\n){10}^> .* GET \/30\S+… .* 200 /m,
  )
  expect(wide).toMatch(KEYS)
  screen.resize({ columns: 60, rows: 16 })
  const narrow = await screen.shows(/^http(?![\s\S]*\n.{61})[\s\S]*\nWebhooks to[\s\S]*j k select/)
  const table = rowsOf(narrow)
  expect(table.length).toBeGreaterThanOrEqual(5)
  for (const row of table) expect(row).toMatch(/ GET \/\S*… .* 200 +\d+ +1$/)
  expect(table.at(-1)).toMatch(/^>/)
})

test(
  "a program that is down is said below the table, and what waits goes on when it is up",
  PATIENCE,
  async () => {
    const world = await ListenWorld.start()
    const port = await freePort()
    const screen = world.desk.onScreen(["listen", "--forward", `http://127.0.0.1:${port}`], {
      columns: 120,
      rows: 24,
    })
    const url = /^(http\S+)$/m.exec(await screen.shows(/^Waiting for webhooks/m))![1]!
    await fetch(url, { method: "POST" })
    await screen.shows(/^> .* no answer, retrying +\d+ +2$/m)
    await screen.shows(
      new RegExp(
        `^http://127\\.0\\.0\\.1:${port} refused the connection; the webhook is tried again\\.$`,
        "m",
      ),
    )
    const local = await Receiver.start(port)
    onTestFinished(() => local.close())
    await screen.shows(/^> .* 200 +\d+ +\d$/m)
    screen.press("C-c")
    expect(await screen.ended()).toBe(0)
  },
)

test("a lost connection is said until there is another", PATIENCE, async () => {
  const world = await ListenWorld.start()
  const proxy = await FaultProxy.start({ host: "127.0.0.1", port: Number(new URL(world.server.url).port) })
  onTestFinished(() => proxy.close())
  const args = ["listen", "--forward", world.forward, "--server", proxy.through(world.server.url)]
  const screen = world.desk.onScreen(args)
  await screen.shows(/^Waiting for webhooks/m)
  proxy.refuse()
  proxy.reset()
  await screen.shows(/^Not connected: [\s\S]*\.\s+The\s+next\s+try\s+is\s+at\s+\d\d:\d\d:\d\d\.$/m)
  proxy.heal()
  await screen.shows(/address\.\n\nWaiting for webhooks/)
  screen.press("q")
  expect(await screen.ended()).toBe(0)
})

test("a terminal that is closed ends it, and nothing is left", PATIENCE, async () => {
  const world = await ListenWorld.start()
  const { screen } = await onScreen(world)
  screen.close()
  await expect.poll(() => world.left(), PATIENCE).toEqual([])
})
