/**
 * Records every change that is made through the API: once, after it was made, with its caller. The response does not wait for the
 * record, and a record that fails is logged: the change was made already, and a repeated request could make it twice.
 */
import type { FastifyRequest } from "fastify"
import { isId } from "../core/ids.ts"
import { seededIds } from "../core/seeded-ids.ts"
import type { Posthorn } from "../posthorn.ts"
import type { Changer } from "../resources/changes.ts"
import type { Tenant } from "../tenant.ts"
import { withTimeout } from "./admission.ts"
import { requireCaller } from "./auth.ts"
import type { Caller } from "./caller.ts"
import { detailOf } from "./change-detail.ts"
import type { Api } from "./context.ts"
import type { RequestRun } from "./idempotent-responses.ts"

declare module "fastify" {
  interface FastifyContextConfig {
    /** False for a route that changes nothing although it is no GET, and for messages and signing in and out. */
    isRecorded?: boolean
  }
  interface FastifyRequest {
    /** Null when there is nothing to record. A handler that has changed nothing sets it to null. */
    change: PendingChange | null
  }
}

interface PendingChange {
  readonly tenant: Tenant
  /** Null unless the request has an idempotency key. */
  readonly run: RequestRun | null
  /** Their ids by the names in the request, as they were before the change. */
  readonly before: Named
  /** The handler's result. */
  answer: Fields
}

interface Named {
  readonly appId: string | null
  readonly endpointId: string | null
}

type Fields = { readonly [name: string]: unknown }

/** More are not recorded while the store is too slow to take them. */
const MOST_PENDING = 1000

export class ChangeLog {
  readonly #writing = new Set<Promise<void>>()

  /** Resolves when the changes of this server until now are recorded. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing)
  }

  /** Never throws. `write` records the change. */
  add({ log, routeOptions }: FastifyRequest, write: () => Promise<void>): void {
    const failed = (error: unknown) => {
      log.warn({ err: error, operation: routeOptions.schema?.operationId }, "a change could not be recorded")
    }
    if (this.#writing.size >= MOST_PENDING) {
      failed(new Error(`${MOST_PENDING} changes wait to be recorded: the store is too slow`))
      return
    }
    const writing = write().catch(failed)
    this.#writing.add(writing)
    void writing.finally(() => this.#writing.delete(writing))
  }
}

/** After the hooks of idempotency: a stored response is no change. */
export function recordChanges(app: Api, posthorn: Posthorn): ChangeLog {
  const log = new ChangeLog()
  app.decorateRequest("change", null)
  app.addHook("preHandler", (request, _reply, done) => {
    if (!isChange(request)) return done()
    const tenant = posthorn.tenant(requireCaller(request).orgId)
    const begin = async () => {
      const before = await namedIn(tenant, request)
      request.change = { tenant, run: request.run, before, answer: {} }
    }
    return withTimeout(request, begin())
  })
  app.addHook("preSerialization", (request, _reply, payload, done) => {
    if (request.change !== null) request.change.answer = payload as Fields
    done(null, payload)
  })
  app.addHook("onSend", (request, reply, payload, done) => {
    const { change } = request
    request.change = null
    if (change !== null && reply.statusCode < 300) log.add(request, () => write(change, request))
    done(null, payload)
  })
  app.addHook("onClose", () => log.settled())
  return log
}

function isChange({ method, is404, routeOptions: { config } }: FastifyRequest): boolean {
  if (method === "GET" || method === "HEAD" || is404) return false
  return config.auth !== "none" && config.isRecorded !== false
}

/** A request that is repeated after a crash has the same id: its first run may have been recorded. */
function idFor({ tenant: { context }, run }: PendingChange): string {
  const ids = run === null ? context.ids : seededIds(`change ${run.seed}`, run.atMs)
  return ids.make("chg", context.clock.now())
}

async function write(change: PendingChange, request: FastifyRequest): Promise<void> {
  const { tenant, before, answer } = change
  const [id, atMs] = [idFor(change), tenant.context.clock.now()]
  const caller = requireCaller(request)
  const operation = request.routeOptions.schema as { readonly operationId: string }
  // A request may have made the application or endpoint that it names.
  const after = before.appId === null || before.endpointId === null ? await namedIn(tenant, request) : before
  const appId = before.appId ?? idIn(answer, "app") ?? after.appId ?? caller.appId
  const endpointId = before.endpointId ?? idIn(answer, "ep") ?? after.endpointId
  await tenant.changes.record({
    ...{ id, atMs, action: operation.operationId.replace(/^v1\./, ""), by: changerOf(caller) },
    ...{ appId, endpointId, subject: subjectOf(request, answer, { appId, endpointId }) },
    detail: detailOf(request),
  })
}

/** The ids of the application and the endpoint in the path or in the body. Null: it names none, or none that exists. */
async function namedIn({ applications, endpoints }: Tenant, request: FastifyRequest): Promise<Named> {
  const body = (request.body ?? {}) as Fields
  const { app_id: app = body.app_id ?? body.appId, endpoint_id: endpoint = body.endpoint_id } =
    request.params as Fields
  const find = async (found: Promise<{ readonly id: string }>) => (await found.catch(() => null))?.id ?? null
  const appId = typeof app !== "string" ? null : isId("app", app) ? app : await find(applications.get(app))
  if (typeof endpoint !== "string" || isId("ep", endpoint))
    return { appId, endpointId: typeof endpoint === "string" ? endpoint : null }
  return { appId, endpointId: appId === null ? null : await find(endpoints.get(appId, endpoint)) }
}

/** The response may be the resource, or name its owner. */
function idIn(answer: Fields, prefix: "app" | "ep"): string | null {
  const { id, [prefix === "app" ? "appId" : "endpointId"]: other } = answer
  return [id, other].find((one): one is string => typeof one === "string" && isId(prefix, one)) ?? null
}

function subjectOf({ params }: FastifyRequest, { id, name }: Fields, { appId, endpointId }: Named) {
  const [last, value] = Object.entries(params as Fields).at(-1) ?? []
  const named = last === "app_id" ? appId : last === "endpoint_id" ? endpointId : (value ?? null)
  return [id, named, name].find((one): one is string => typeof one === "string") ?? null
}

function changerOf({ via, keyId, browserSession, name, appId }: Caller): Changer {
  return { kind: via, id: browserSession ?? keyId, name, appId }
}
