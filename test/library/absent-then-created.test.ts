/**
 * No cache keeps a "not found" past the moment in which the thing is created: each thing is asked for while it is absent, often enough for
 * every cache to have it, is then created, and must be found by the next request. By the library and over HTTP, created here and by another process.
 */
import { expect, onTestFinished, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { openPosthorn, type Posthorn } from "../../src/posthorn.ts"
import { TENANT_WEBHOOK_APP } from "../../src/tenant-webhooks/tenant-webhooks.ts"
import { type Answer, ApiServer, type CallOptions } from "../api/support/server.ts"
import { freshGround } from "../support/combination.ts"
import { LOOPBACK } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"

/** PostgreSQL looks up an application's routes from its second message on. */
const ASKED_BEFORE = 4
const URL = "http://127.0.0.1:9/"
const TOKEN = "an-admin-key-of-the-operators-own"
const MESSAGE = { eventType: "invoice.paid", payload: {} }

interface Stage {
  readonly server: ApiServer
  /** Makes things: this Posthorn, or one of another process on the same data. */
  readonly maker: Posthorn
}

interface Case {
  /** Makes the things that have to exist before. */
  prepare?(stage: Stage): Promise<unknown>
  /** Whether the thing was found. */
  isFound(stage: Stage, n: number): Promise<boolean>
  create(stage: Stage): Promise<unknown>
}

async function found(asked: Promise<unknown>): Promise<boolean> {
  try {
    await asked
    return true
  } catch (error) {
    expect(error).toMatchObject({ code: expect.stringMatching(/^(not_found|invalid_input)$/) })
    return false
  }
}

async function answered(asked: Promise<Answer>): Promise<boolean> {
  const { status } = await asked
  expect(status).toBeOneOf([200, 201, 202, 401, 404, 422])
  return status < 300
}

const acme = ({ maker }: Stage) => maker.applications.create({ uid: "acme", name: "Acme" })
const post = ({ server }: Stage, path: string, body: unknown, more: CallOptions = {}) =>
  answered(server.call("POST", path, { body, ...more }))
const get = ({ server }: Stage, path: string, more: CallOptions = {}) =>
  answered(server.call("GET", path, more))

const CASES: { readonly [name: string]: Case } = {
  "an application that is sent to by uid": {
    isFound: ({ server }) => found(server.posthorn.send("acme", MESSAGE)),
    create: acme,
  },
  "an application that is sent to in a batch": {
    isFound: ({ server }) => found(server.posthorn.sendBatch("acme", [MESSAGE, MESSAGE])),
    create: acme,
  },
  "an application that is sent to with an idempotency key": {
    isFound: ({ server }) => found(server.posthorn.send("acme", { ...MESSAGE, idempotencyKey: "k" })),
    create: acme,
  },
  "an application that POST /msg names by uid": {
    isFound: (stage) => post(stage, "/app/acme/msg", MESSAGE),
    create: acme,
  },
  "an application that POST /msg names with an idempotency key": {
    isFound: (stage) => post(stage, "/app/acme/msg", MESSAGE, { headers: { "idempotency-key": "k" } }),
    create: acme,
  },
  "an application that POST /msg names, and then brings along": {
    isFound: (stage, n) =>
      post(stage, "/app/acme/msg", {
        ...MESSAGE,
        ...(n < ASKED_BEFORE ? {} : { application: { name: "Acme", uid: "acme" } }),
      }),
    create: async () => {},
  },
  "an application that is read": {
    isFound: ({ server }) => found(server.posthorn.applications.get("acme")),
    create: acme,
  },
  "an application that is read over HTTP": { isFound: (stage) => get(stage, "/app/acme"), create: acme },
  "an application that an endpoint is made for": {
    isFound: ({ server }) => found(server.posthorn.endpoints.create("acme", { url: URL })),
    create: acme,
  },
  "an endpoint that is read by uid": {
    prepare: acme,
    isFound: ({ server }) => found(server.posthorn.endpoints.get("acme", "hook")),
    create: ({ maker }) => maker.endpoints.create("acme", { uid: "hook", url: URL }),
  },
  "an endpoint that is read over HTTP": {
    prepare: acme,
    isFound: (stage) => get(stage, "/app/acme/endpoint/hook"),
    create: ({ maker }) => maker.endpoints.create("acme", { uid: "hook", url: URL }),
  },
  "an endpoint that gets messages": {
    prepare: acme,
    isFound: async ({ server }) => (await server.posthorn.send("acme", MESSAGE)).matched > 0,
    create: ({ maker }) => maker.endpoints.create("acme", { url: URL }),
  },
  "an endpoint that asks for the type": {
    prepare: async (stage) => {
      await acme(stage)
      await stage.maker.endpoints.create("acme", { uid: "hook", url: URL, eventTypes: ["other"] })
    },
    isFound: async ({ server }) => (await server.posthorn.send("acme", MESSAGE)).matched > 0,
    create: ({ maker }) => maker.endpoints.update("acme", "hook", { eventTypes: ["invoice.paid"] }),
  },
  "a policy by its name": {
    prepare: acme,
    isFound: ({ server }) => found(server.posthorn.endpoints.create("acme", { url: URL, retry: "patient" })),
    create: ({ maker }) => maker.policies.put("patient", { delays: [60], maxAttempts: 3 }),
  },
  "a policy that is read over HTTP": {
    isFound: (stage) => get(stage, "/retry-policy/patient"),
    create: ({ maker }) => maker.policies.put("patient", { delays: [60], maxAttempts: 3 }),
  },
  "an event type": {
    isFound: ({ server }) => found(server.posthorn.eventTypes.get("invoice.paid")),
    create: ({ maker }) => maker.eventTypes.create({ name: "invoice.paid", description: "An invoice" }),
  },
  "an event type over HTTP": {
    isFound: (stage) => get(stage, "/event-type/invoice.paid"),
    create: ({ maker }) => maker.eventTypes.create({ name: "invoice.paid", description: "An invoice" }),
  },
  "a key over HTTP": {
    isFound: (stage) => get(stage, "/app", { key: TOKEN }),
    create: ({ maker }) => maker.keys.adopt(TOKEN, { name: "own", scope: "admin" }),
  },
  "a key over HTTP that sends": {
    prepare: acme,
    isFound: (stage) => post(stage, "/app/acme/msg", MESSAGE, { key: TOKEN }),
    create: ({ maker }) => maker.keys.adopt(TOKEN, { name: "own", scope: "admin" }),
  },
  "a message by its event id": {
    prepare: acme,
    isFound: ({ server }) => found(server.posthorn.messages.get("acme", "evt-1")),
    create: ({ maker }) => maker.send("acme", { ...MESSAGE, eventId: "evt-1" }),
  },
  "a message over HTTP by its event id": {
    prepare: acme,
    isFound: (stage) => get(stage, "/app/acme/msg/evt-1"),
    create: ({ maker }) => maker.send("acme", { ...MESSAGE, eventId: "evt-1" }),
  },
}

const MAKERS = ["here", "by another process"] as const

test.for(
  Object.entries(CASES).flatMap(([name, one]) => MAKERS.map((maker) => [name, maker, one] as const)),
)("%s is found when it was created %s", async ([_name, maker, { prepare, isFound, create }]) => {
  const { store, schedule } = (await freshGround({ migrated: true })).options
  const options = { store, ...(schedule === undefined ? {} : { schedule }) }
  const server = await ApiServer.start({ options })
  const stage = { server, maker: maker === "here" ? server.posthorn : await openAnother(options) }
  await prepare?.(stage)
  for (let n = 0; n < ASKED_BEFORE; n++) expect(await isFound(stage, n)).toBe(false)
  await create(stage)
  expect(await isFound(stage, ASKED_BEFORE)).toBe(true)
})

test("an operational endpoint gets what happens after it was created, also when the lookup before found none", async () => {
  const { promise: created, resolve: go } = Promise.withResolvers<void>()
  const { promise: looked, resolve: hasLooked } = Promise.withResolvers<void>()
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const { posthorn } = await ApiServer.start({
    wrapStore: (store) => ({
      ...store,
      // The first lookup finds none, and its answer is late.
      async getApplication(orgId, app) {
        const answer = await store.getApplication(orgId, app)
        if (app !== TENANT_WEBHOOK_APP) return answer
        hasLooked()
        if (answer === null && isHeldBack) await created
        return answer
      },
    }),
  })
  let isHeldBack = true
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { url: URL })
  await looked
  isHeldBack = false
  const shadow = await posthorn.tenantWebhooks.open(DEFAULT_ORG)
  await shadow.endpoints.create(TENANT_WEBHOOK_APP, { url: receiver.url("/operations") })
  go()
  await posthorn.tenantWebhooks.settled()
  const { id } = await posthorn.endpoints.create("acme", { url: URL })
  await posthorn.tenantWebhooks.settled()
  await receiver.arrived("/operations", 1)
  expect(JSON.parse(`${receiver.to("/operations")[0]!.body}`).data.endpointId).toBe(id)
})

async function openAnother(options: { readonly store: string }): Promise<Posthorn> {
  const another = await openPosthorn({ ...options, deliver: false, logger: "silent", egress: LOOPBACK })
  onTestFinished(() => another.close())
  return another
}
