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
  "v1.endpoint.series": "ViewBase",
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
  "v1.search.find": "ViewBase",
  "v1.authentication.whoami": "ViewBase",
  "v1.authentication.logout": "ViewBase",
}
const LOGOUT = "v1.authentication.logout"
/** A POST that changes nothing. */
const PREVIEW = "v1.retry-policy.preview"

/** A thousand requests are soon answered, unless the machine has much else to do. */
const PATIENTLY = { timeout: 120_000 }
const FINE = [200, 201, 202, 204]
/** The answers of operations that need no key. A session is opened only from a page of the server. */
const open = ({ id }: Operation) => (id === "v1.session.open" ? [403] : FINE)
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
  const { token: ended } = await world.sessionOf(id)
  // Not through the API, which would record the change.
  const { keys: ofTenant, sessions } = server.posthorn.tenant("org_first")
  await ofTenant.revoke(id)
  const { id: kept } = await world.firstKey({ scope: "admin" })
  const { id: session, token: loggedOut } = await world.sessionOf(kept)
  await sessions.revoke(session)
  const expiring = await world.firstKey({ scope: "admin", expiresAt: Date.now() + 3000 })
  const [expired, { token: outlived }] = [expiring.token, await world.sessionOf(expiring.id)]
  await expect
    .poll(async () => (await server.call("GET", "/app", { key: expired })).status, { timeout: 30_000 })
    .toBe(401)
  const unknown = `ph_${"a".repeat(16)}_${"b".repeat(40)}`
  const forged = first.key.replace(/.$/, (last) => (last === "a" ? "b" : "a"))
  const keys = {
    ...{ none: null, nonsense: "nonsense", malformed: "ph_a_b", unknown, forged, revoked, expired },
    ...{
      "a session of a revoked key": ended,
      "a session of an expired key": outlived,
      "a session that logged out": loggedOut,
    },
  }
  for (const operation of world.operations) {
    const request = requestFor(operation, [first.ids], first.ids)
    const allowed = operation.isOpen ? open(operation) : [401]
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
  const { id: allId, token: all } = await world.firstKey({ scope: "read" })
  const { id: oneId, token: one } = await world.firstKey({ scope: "read", appId: first.appId })
  const sessions = async () =>
    [(await world.sessionOf(allId)).token, (await world.sessionOf(oneId)).token] as const
  const kept = await sessions()
  for (const operation of world.operations) {
    const request = requestFor(operation, [first.ids], first.ids)
    const reads = isReading(operation) || operation.id === PREVIEW
    const mayRead = reads && !operation.id.endsWith("get-secret") && !isOperators(operation)
    const mayPortal = operation.id in PORTALS || operation.isOpen
    const isLogout = operation.id === LOGOUT
    const [ofAll, ofOne] = isLogout ? await sessions() : kept
    for (const [who, key, may] of [
      ["a reader", all, mayRead],
      ["a reader of one application", one, mayRead && mayPortal],
      ["a session that reads", ofAll, mayRead || isLogout],
      ["a session that reads one application", ofOne, (mayRead && mayPortal) || isLogout],
    ] as const)
      await world.visit({
        who,
        key,
        request,
        allowed: operation.isOpen ? open(operation) : may ? FINE : [403],
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
  const visitors = async () => {
    const { id, token } = await portal(["ViewBase", "ManageTransformations"])
    return { "a session of a portal": (await world.sessionOf(id)).token, "a portal that may look": token }
  }
  const kept = await visitors()
  for (const operation of world.operations) {
    const may = PORTALS[operation.id] === "ViewBase"
    for (const [who, key] of Object.entries(operation.id === LOGOUT ? await visitors() : kept))
      await world.visit({
        who,
        key,
        request: requestFor(operation, [first.ids], first.ids),
        allowed: operation.isOpen ? open(operation) : may ? FINE : [403],
        hidden: first.secrets,
      })
  }
  await world.isUntouched()
})

test("an agent's key connects an agent and opens nothing else", PATIENTLY, async () => {
  const world = await World.start()
  const { first } = world
  const { token: key } = await world.firstKey({ scope: "agent", appId: first.appId })
  for (const operation of world.operations)
    await world.visit({
      who: "an agent",
      key,
      request: requestFor(operation, [first.ids], first.ids),
      allowed: operation.isOpen ? open(operation) : [403],
      hidden: [...everythingOf(first), ...first.ownNames],
    })
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
    const operators = { retry: null, ordered: true, concurrency: 2, url: "relay://hub" }
    for (const operation of world.operations.filter(({ id }) => id in PORTALS))
      for (const [field, value] of Object.entries(operators)) {
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
    expect(given).toHaveLength(12)
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
      const allowed = operation.isOpen ? open(operation) : operation.id in PORTALS ? FINE : [403]
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
      allowed: operation.isOpen ? open(operation) : isOperators(operation) ? [403] : [...FINE, 409],
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
  if (operation.isOpen) return open(operation)
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
