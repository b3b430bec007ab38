/** Every operation of the API × every kind of caller that must not get in: the right status, nothing shown, nothing changed. */
import { expect, test } from "vitest"
import type { Capability } from "../../src/resources/keys.ts"
import { type Naming, requestFor } from "./support/naming.ts"
import { isOperators, namesIn, type Operation } from "./support/operations.ts"
import type { FullTenant } from "./support/tenant.ts"
import { World } from "./support/world.ts"

/** The operations that keys of one application may call, and the capability for each. All others need a key of the whole tenant. */
const PORTALS: { readonly [operation: string]: Capability } = {
  "v1.application.get": "ViewBase",
  "v1.endpoint.list": "ViewBase",
  "v1.endpoint.create": "ManageEndpoint",
  "v1.endpoint.get": "ViewBase",
  "v1.endpoint.update": "ManageEndpoint",
  "v1.endpoint.patch": "ManageEndpoint",
  "v1.endpoint.delete": "ManageEndpoint",
  "v1.endpoint.pause": "ManageEndpoint",
  "v1.endpoint.enable": "ManageEndpoint",
  "v1.endpoint.enable-preview": "ViewBase",
  "v1.endpoint.trip": "ManageEndpoint",
  "v1.endpoint.reset": "ManageEndpoint",
  "v1.endpoint.resume": "ManageEndpoint",
  "v1.endpoint.get-secret": "ViewEndpointSecret",
  "v1.endpoint.rotate-secret": "ManageEndpointSecret",
  "v1.endpoint.get-headers": "ViewBase",
  "v1.endpoint.update-headers": "ManageEndpoint",
  "v1.endpoint.patch-headers": "ManageEndpoint",
  "v1.endpoint.get-stats": "ViewBase",
  "v1.endpoint.get-attempt-stats": "ViewBase",
  "v1.endpoint.health": "ViewBase",
  "v1.endpoint.list-health": "ViewBase",
  "v1.endpoint.recover": "CreateAttempts",
  "v1.endpoint.replay-missing": "CreateAttempts",
  "v1.endpoint.bulk-replay": "CreateAttempts",
  "v1.endpoint.cancel-msgs": "ManageEndpoint",
  "v1.source.list": "ViewBase",
  "v1.source.get": "ViewBase",
  "v1.source.activity": "ViewBase",
  "v1.agent.list": "ViewBase",
  "v1.agent.get": "ViewBase",
  "v1.message.list": "ViewBase",
  "v1.message.get": "ViewBase",
  "v1.message-attempt.resend": "CreateAttempts",
  "v1.message-attempt.list-by-app": "ViewBase",
  "v1.message-attempt.list-by-endpoint": "ViewBase",
  "v1.message-attempt.list-by-msg": "ViewBase",
  "v1.message-attempt.get": "ViewBase",
  "v1.message-attempt.list-attempted-messages": "ViewBase",
  "v1.message-attempt.list-attempted-destinations": "ViewBase",
  "v1.event-type.list": "ViewBase",
  "v1.event-type.get": "ViewBase",
  "v1.events.stream": "ViewBase",
  "v1.authentication.whoami": "ViewBase",
  "v1.authentication.logout": "ViewBase",
}
const LOGOUT = "v1.authentication.logout"

/** A thousand requests are soon answered, unless the machine has much else to do. */
const PATIENTLY = { timeout: 120_000 }
const FINE = [200, 201, 202, 204]
const isReading = ({ method }: Operation) => method === "GET" || method === "HEAD"
const isOfApplication = ({ path }: Operation) => path.includes("{app_id}")
const asksForApplications = ({ parameters }: Operation) =>
  parameters.some((one) => one.in === "query" && one.name === "app_id")
/** A PUT makes what it does not find. */
const puts = ({ method, path }: Operation) => method === "PUT" && path.endsWith("}")
const everythingOf = ({ ownIds, secrets, appMark, orgMark }: FullTenant) => [
  appMark,
  orgMark,
  ...secrets,
  ...ownIds,
]

test("without a key that is good nothing opens that is not open to all", PATIENTLY, async () => {
  const world = await World.start()
  const { first, server } = world
  const { id, token: revoked } = await world.firstKey({ scope: "admin" })
  await server.call("DELETE", `/key/${id}`, { key: first.key })
  const { token: expired } = await world.firstKey({ scope: "admin", expiresAt: Date.now() + 100 })
  await expect.poll(async () => (await server.call("GET", "/app", { key: expired })).status).toBe(401)
  const unknown = `ph_${"a".repeat(16)}_${"b".repeat(40)}`
  const forged = first.key.replace(/.$/, (last) => (last === "a" ? "b" : "a"))
  const keys = { none: null, nonsense: "nonsense", malformed: "ph_a_b", unknown, forged, revoked, expired }
  for (const operation of world.operations) {
    const request = requestFor(operation, [first.ids], first.ids)
    const allowed = operation.isOpen ? FINE : [401]
    const visits = Object.entries(keys).map(([who, key]) =>
      world.visit({ who, key, request, allowed, hidden: [...everythingOf(first), ...first.ownNames] }),
    )
    await Promise.all(visits)
  }
  await world.isUntouched()
})

test("a reading key only reads, no secrets, and one of an application only there", PATIENTLY, async () => {
  const world = await World.start()
  const { first } = world
  const { token: all } = await world.firstKey({ scope: "read" })
  const { token: one } = await world.firstKey({ scope: "read", appId: first.appId })
  for (const operation of world.operations) {
    const request = requestFor(operation, [first.ids], first.ids)
    const mayRead = isReading(operation) && !operation.id.endsWith("get-secret") && !isOperators(operation)
    const mayPortal = operation.id in PORTALS || operation.isOpen
    for (const [who, key, may] of [
      ["a reader", all, mayRead],
      ["a reader of one application", one, mayRead && mayPortal],
    ] as const)
      await world.visit({
        who,
        key,
        request,
        allowed: may ? FINE : [403],
        hidden: first.secrets,
      })
  }
  await world.isUntouched()
})

test("a portal's key with too few capabilities looks and does nothing else", PATIENTLY, async () => {
  const world = await World.start()
  const { first } = world
  const portal = (capabilities: readonly Capability[]) =>
    world.firstKey({ scope: "application", appId: first.appId, capabilities })
  const { token: key } = await portal(["ViewBase", "ManageTransformations"])
  for (const operation of world.operations) {
    const may = operation.isOpen || PORTALS[operation.id] === "ViewBase"
    await world.visit({
      who: "a portal that may look",
      key: operation.id === LOGOUT ? (await portal(["ViewBase"])).token : key,
      request: requestFor(operation, [first.ids], first.ids),
      allowed: may ? FINE : [403],
      hidden: first.secrets,
    })
  }
  await world.isUntouched()
})

test(
  "what is for operators, no key of one application sets, wherever it can be given",
  PATIENTLY,
  async () => {
    const world = await World.start()
    const { first } = world
    const { token: key } = await world.firstKey({ scope: "application", appId: first.appId })
    const given: [string, string][] = []
    for (const operation of world.operations.filter(({ id }) => id in PORTALS))
      for (const [field, value] of Object.entries({ retry: null, ordered: true, concurrency: 2 })) {
        if (operation.body?.properties?.[field] === undefined) continue
        given.push([operation.id, field])
        const { body, ...request } = requestFor(operation, [first.ids], first.ids)
        await world.visit({
          who: `a portal that sets ${field}`,
          key,
          request: { ...request, body: { ...(body as object), [field]: value } },
          allowed: [403],
          hidden: first.secrets,
        })
      }
    expect(given).toHaveLength(9)
    await world.isUntouched()
  },
)

test("for the key of one application no other exists, nor what is in it", PATIENTLY, async () => {
  const world = await World.start()
  const { first } = world
  const sibling = await world.sibling()
  const portal = () => world.firstKey({ scope: "application", appId: sibling.appId })
  const { token } = await portal()
  const hidden = everythingOf(first).filter((mark) => mark !== first.orgMark)
  for (const operation of world.operations) {
    const key = operation.id === LOGOUT ? (await portal()).token : token
    const visitor = { who: "another application", key, hidden }
    const namesOne = isOfApplication(operation) || asksForApplications(operation)
    if (operation.isOpen || !(operation.id in PORTALS) || !namesOne) {
      const allowed = operation.isOpen || operation.id in PORTALS ? FINE : [403]
      await world.visit({ ...visitor, request: requestFor(operation, [first.ids], first.ids), allowed })
    } else await lookInto(world, { ...visitor, operation, own: sibling.ids })
  }
  await world.isUntouched()
})

test(
  "another tenant's admin finds nothing of it, by whatever name, also below an application of their own",
  PATIENTLY,
  async () => {
    const world = await World.start()
    const stranger = await world.fill({ orgId: "org_stranger", mark: "lamu", suffix: "stranger" })
    for (const operation of world.operations)
      await lookInto(world, {
        who: "another tenant",
        key: stranger.key,
        hidden: [...everythingOf(world.first), ...world.first.ownNames],
        operation,
        own: stranger.ids,
      })
    await world.isUntouched()
  },
)

test("a tenant that uses the same names has its own, and can do everything with it", PATIENTLY, async () => {
  const world = await World.start()
  const twin = await world.fill({ orgId: "org_twin", mark: "mafia", suffix: "first" })
  for (const operation of world.operations) {
    const needed = PORTALS[operation.id]
    const portal = async () =>
      world.keyOf("org_twin", { scope: "application", appId: twin.appId, capabilities: [needed!] })
    // The key has no capability but this one.
    const key = needed === undefined ? twin.key : (await portal()).token
    await world.visit({
      who: "the twin",
      key,
      request: requestFor(operation, [twin.uids], twin.uids),
      // A conflict with an earlier operation is fine: access was granted.
      allowed: isOperators(operation) ? [403] : [...FINE, 409],
      hidden: everythingOf(world.first),
    })
  }
  await world.isUntouched()
})

interface Look {
  readonly who: string
  readonly key: string
  readonly hidden: readonly string[]
  readonly operation: Operation
  /** The visitor's own names, in the place of some. */
  readonly own: Naming
}

/** With every mixture of one's own names and the first tenant's; and nothing tells the latter from names that nobody has. */
async function lookInto(world: World, { operation, own, ...visitor }: Look): Promise<void> {
  const places = namesIn(operation.path).length
  for (const foreign of [world.first.ids, world.first.uids]) {
    const nobodys = unlike(foreign)
    const isReferring =
      JSON.stringify(requestFor(operation, [own], foreign)) !==
      JSON.stringify(requestFor(operation, [own], own))
    for (let mixture = places === 0 || isReferring ? 0 : 1; mixture < 2 ** places; mixture++) {
      const named = (theirs: Naming) =>
        Array.from({ length: Math.max(places, 1) }, (_, i) => ((mixture >> i) & 1 ? theirs : own))
      const request = requestFor(operation, named(foreign), foreign)
      const allowed = expected(operation, mixture, places, isReferring)
      const answer = await world.visit({ ...visitor, request, allowed })
      if (answer?.status !== 404) continue
      const nowhere = requestFor(operation, named(nobodys), nobodys)
      const same = await world.visit({ ...visitor, request: nowhere, allowed: [404] })
      const { method, path } = request
      if (same !== null && same.text !== renamed(answer.text, foreign))
        world.note(`${method} ${path} tells that it exists: ${answer.text} instead of ${same.text}`)
    }
  }
}

function expected(operation: Operation, mixture: number, places: number, isReferring: boolean): number[] {
  if (isOperators(operation)) return [403]
  // An admin has nothing to log out of.
  if (operation.id === LOGOUT) return [...FINE, 400]
  if (mixture === 0) return isReferring ? [...FINE, 404, 422] : [...FINE, 409]
  const onlyTheLast = mixture === 2 ** (places - 1)
  return puts(operation) && onlyTheLast ? [200, 201] : [404]
}

/** Of the same form, and nobody's. */
function unlike(naming: Naming): Naming {
  return JSON.parse(renamed(JSON.stringify(naming), naming))
}

function renamed(text: string, { names }: Naming): string {
  return [...new Set(Object.values(names))].reduce(
    (changed, name) => changed.replaceAll(name, `${name.slice(0, -3)}zzz`),
    text,
  )
}
