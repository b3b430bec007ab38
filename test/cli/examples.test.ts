/** The examples in every command's help, and those in the pages, work as typed. */
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { isGroup } from "../../src/cli/command.ts"
import { COMMANDS } from "../../src/cli/registry.ts"
import { World } from "./world.ts"

const PATIENCE_MS = 300_000
const FILES = {
  "invoice.json": '{"invoice": 17}',
  "policy.json": '{"delays": [60, 600], "maxAttempts": 3}',
  "slack.json": '{"kind": "slack", "url": "https://hooks.slack.com/services/T0/B0/XYZ"}',
  "secret.txt": "It's a Secret to Everybody\n",
  "hmac.json": '{"verification": {"scheme": "hmac", "header": "x-signature"}, "secret": "abc"}',
  "schema.json": '{"type": "object", "examples": [{"invoice": 17}]}',
  "openapi.yaml": `openapi: 3.1.0
info: { title: Acme, version: "1" }
webhooks:
  invoice.overdue:
    post: { description: An invoice is overdue }
`,
}

async function examplesInHelp(): Promise<string[]> {
  const commands = await Promise.all(Object.values(COMMANDS).map((entry) => entry.load()))
  return commands
    .flatMap((loaded) => ("command" in loaded ? [loaded.command] : []))
    .flatMap((command) => (isGroup(command) ? Object.values(command.actions) : [command]))
    .flatMap(({ examples }) => examples)
}

function examplesInPage(): string[] {
  const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8")
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) => block!)
  return blocks.flatMap((block) => block.replaceAll("\\\n", " ").trim().split("\n"))
}

/** Examples that delete something run after those that need it: the application goes last. */
function lateness(example: string): number {
  if (/apps delete|--replace-all/.test(example)) return 2
  return / (delete|revoke|archive) /.test(example) ? 1 : 0
}

const isElsewhere = (example: string) =>
  /posthorn (bench|serve|demo|worker|agent|listen|migrate|tail)\b/.test(example)

type Finds = (example: string, world: World) => Promise<string>

const madeDelivery: Finds = (example, world) =>
  /cancel|reschedule/.test(example) ? world.waiting() : world.deadLetter()

/** A delivery that earlier examples made, in the state that this example is for. */
const foundDelivery: Finds = async (example, { server: { posthorn } }) => {
  const { id, status } = (await posthorn.deliveries.list({ app: "acme", endpoint: "main" })).data[0]!
  if (example.includes("posthorn dead") && status !== "dead") await posthorn.deliveries.cancel(id)
  return id
}

async function filledIn(example: string, world: World, delivery: Finds): Promise<string> {
  const { tasks, keys, dead, endpoints, alerts } = world.server.posthorn
  if (example.includes("endpoints enable")) await endpoints.update("acme", "main", { disabled: true })
  const values: { readonly [name: string]: () => Promise<string> } = {
    DELIVERY_ID: () => delivery(example, world),
    MESSAGE_ID: () => world.send("invoice.paid"),
    TASK_ID: async () => {
      await dead.retryMany({ app: "acme" })
      return (await tasks.list()).data[0]!.id
    },
    ENDPOINT_ID: async () => (await endpoints.get("acme", "main")).id,
    ALERT_ID: () => world.firingAlert(),
    SILENCE_ID: async () => {
      const until = Date.now() + 3_600_000
      return (await alerts.silences.create({ rule: "oldest-due", until })).id
    },
    "agents show": async () => {
      await endpoints.create("acme", { url: "relay://hub", eventTypes: ["none"] })
      return "agents show"
    },
    KEY_ID: async () => (await keys.create({ name: "old", scope: "read" })).id,
    "http://localhost:8071": async () => world.server.url,
    "ph_…": async () => world.server.key,
  }
  let filled = example
  for (const [name, value] of Object.entries(values))
    if (filled.includes(name)) filled = filled.replaceAll(name, await value())
  return filled
}

/** One after the other, in one world: with a line for each that did not work. */
async function tryAll(examples: readonly string[], world: World, delivery: Finds): Promise<string[]> {
  for (const [name, content] of Object.entries(FILES)) world.desk.write(name, content)
  const problems: string[] = []
  for (const example of examples.filter((one) => !isElsewhere(one))) {
    const { code, stderr } = await world.desk.type(await filledIn(example, world, delivery))
    if (code !== 0) problems.push(`${example}: ${code} ${stderr}`)
  }
  return problems
}

test("every example in the help works as typed", { timeout: PATIENCE_MS }, async () => {
  const examples = [...new Set(await examplesInHelp())].sort((a, b) => lateness(a) - lateness(b))
  expect(examples.length).toBeGreaterThan(60)
  expect(await tryAll(examples, await World.start(), madeDelivery)).toEqual([])
})

test("the examples in the page work on an empty server, one after the other", {
  timeout: PATIENCE_MS,
}, async () => {
  const examples = examplesInPage()
  expect(examples.length).toBeGreaterThan(50)
  expect(await tryAll(examples, await World.empty(), foundDelivery)).toEqual([])
})
