/** A tenant that has one of everything, each with a mark by which it is known wherever it turns up. */
import { expect } from "vitest"
import { grantOf } from "../../../src/resources/sessions.ts"
import type { Receiver } from "../../support/receiver.ts"
import { type Naming, namingOf } from "./naming.ts"
import type { ApiServer } from "./server.ts"

export interface FullTenant {
  /** An admin's. */
  readonly key: string
  readonly appId: string
  readonly ids: Naming
  /** By the names that the tenant itself has chosen, where it can. */
  readonly uids: Naming
  readonly ownIds: readonly string[]
  /** Others may have chosen the same. */
  readonly ownNames: readonly string[]
  /** Secrets that not even every key of the tenant may see. */
  readonly secrets: readonly string[]
  /** In every text of what belongs to the application. */
  readonly appMark: string
  /** In every text of what belongs to the tenant as a whole. */
  readonly orgMark: string
}

export interface TenantInput {
  readonly orgId: string
  readonly mark: string
  /** The end of its uids; two tenants may use the same. */
  readonly suffix: string
}

/** The name of keys that tests ask with. */
export const VISITOR = "visitor"
const HOUR_MS = 3_600_000

export async function fillTenant(
  server: ApiServer,
  receiver: Receiver,
  { orgId, mark, suffix }: TenantInput,
): Promise<FullTenant> {
  const { token: key } = await server.posthorn.tenant(orgId).keys.create({ name: VISITOR, scope: "admin" })
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await server.call(method, path, { key, body })
    if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`)
    return answer.body
  }
  const [appMark, orgMark, secretMark] = [`${mark}-app`, `${mark}-org`, `${mark}-secret`]
  const uid = (what: string) => `${what}-${suffix}`
  const headers = { "x-api-key": secretMark, "x-plain": appMark }
  receiver.always(`/${appMark}`, (_request, response) => response.writeHead(500).end(appMark))

  const eventType = uid("type")
  const schemas = { 1: { examples: [{ said: orgMark }] } }
  await call("POST", "/event-type", { name: eventType, description: orgMark, schemas })
  const policy = uid("policy")
  await call("PUT", `/retry-policy/${policy}`, { delays: [3600], maxAttempts: 1 })
  const operational = await call("POST", "/operational-webhook/endpoint", {
    url: receiver.url(`/${orgMark}`),
    uid: uid("operational"),
    description: orgMark,
    headers: { "x-api-key": secretMark, "x-plain": orgMark },
  })
  const metadata = { note: appMark }
  const app = await call("POST", "/app", { name: appMark, uid: uid("app"), metadata })
  const endpoint = await call("POST", `/app/${app.id}/endpoint`, {
    url: receiver.url(`/${appMark}`),
    uid: uid("endpoint"),
    description: appMark,
    retry: policy,
    auth: { type: "bearer", token: secretMark },
    headers,
    metadata,
  })
  const source = await call("POST", `/app/${app.id}/source`, {
    name: uid("source"),
    description: appMark,
    verification: "github",
    secret: secretMark,
  })
  const agent = uid("agent").toLowerCase()
  const relayed = await call("POST", `/app/${app.id}/endpoint`, {
    url: `relay://${agent}`,
    description: appMark,
    eventTypes: ["nothing.sent"],
  })
  const message = { eventType, payload: { said: appMark }, tags: [appMark], metadata }
  const sent = await call("POST", `/app/${app.id}/msg`, { ...message, eventId: uid("event") })
  const later = await call("POST", `/app/${app.id}/msg`, {
    ...message,
    deliverAt: new Date(Date.now() + HOUR_MS).toISOString(),
  })
  await expect.poll(async () => (await call("GET", `/dead-letter?msg_id=${sent.id}`)).data.length).toBe(1)
  const [dead] = (await call("GET", `/dead-letter?msg_id=${sent.id}`)).data
  const [waiting] = (await call("GET", `/delivery?msg_id=${later.id}`)).data
  const [attempt] = (await call("GET", `/app/${app.id}/attempt/msg/${sent.id}`)).data
  const task = await call("PUT", "/stats/usage/event-types")
  const portal = await call("POST", "/key", { name: orgMark, scope: "application", appId: app.id })
  const { keys, sessions } = server.posthorn.tenant(orgId)
  const session = await sessions.open(grantOf(await keys.get(portal.id)))
  const { key: secret } = await call("GET", `/app/${app.id}/endpoint/${endpoint.id}/secret`)
  const operationalSecret = await call("GET", `/operational-webhook/endpoint/${operational.id}/secret`)

  const made = [
    app,
    endpoint,
    relayed,
    operational,
    source,
    sent,
    later,
    dead,
    waiting,
    attempt,
    task,
    portal,
    session,
  ]
  const ids = {
    app: app.id,
    endpoint: endpoint.id,
    operational: operational.id,
    source: source.id,
    message: sent.id,
    attempt: attempt.id,
    dead: dead.id,
    waiting: waiting.id,
    task: task.id,
    key: portal.id,
    session: session.id,
    policy,
    eventType,
    agent,
  }
  const uids = {
    app: uid("app"),
    endpoint: uid("endpoint"),
    operational: uid("operational"),
    source: uid("source"),
    message: uid("event"),
  }
  return {
    key,
    appId: app.id,
    ids: namingOf(ids),
    uids: namingOf({ ...ids, ...uids }),
    ownIds: made.map(({ id }) => id),
    ownNames: [policy, eventType, agent, ...Object.values(uids)],
    secrets: [secretMark, portal.token, session.token, secret, operationalSecret.key, source.url],
    appMark,
    orgMark,
  }
}
