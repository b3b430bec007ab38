/** Access control: what a route requires, and whether a caller has it. */
import type { FastifyContextConfig, FastifyRequest, RouteOptions } from "fastify"
import { DEFAULT_ORG } from "../core/org.ts"
import { transportOf } from "../core/transport-kind.ts"
import type { Capability } from "../resources/keys.ts"
import type { Caller } from "./caller.ts"
import { ApiError } from "./errors.ts"

/**
 * `operator`: keys of the whole default tenant, for what belongs to the deployment. `org`: keys of the whole tenant. `app`: also keys of
 * the application in the path. `read`: every key of the tenant. `none`: no key.
 */
export type Need = "operator" | "org" | "app" | "read" | "none"

declare module "fastify" {
  interface FastifyContextConfig {
    auth?: Need
    /** Required of keys that have a list of capabilities. */
    capability?: Capability
  }
}

/** Other texts cannot name an application: the store is not asked. */
const NAME = /^[\w.-]{1,256}$/

/** The capabilities that imply another. Each implies ViewBase. */
const INCLUDED_IN: { readonly [C in Capability]?: readonly Capability[] } = {
  ViewEndpointSecret: ["ManageEndpointSecret", "ManageEndpoint"],
  ManageEndpointSecret: ["ManageEndpoint"],
}

/** Throws for a route that does not declare its access and its parameters. */
export function requireDeclared({ method, url, config, schema }: RouteOptions): void {
  const route = `${method} ${url}`
  if (config?.auth === undefined) throw new Error(`${route} does not declare what it needs: set config.auth`)
  if (config.auth === "app" && !/\/:app_id(\/|$)/.test(url))
    throw new Error(`${route} needs an application, and has no :app_id in its path`)
  const reads = [method].flat().every((one) => one === "GET" || one === "HEAD")
  const portalsMay = config.auth === "app" || config.auth === "read"
  if (portalsMay && !reads && config.capability === undefined)
    throw new Error(`${route} changes something that portals may: set config.capability`)
  if (schema?.hide) return
  if (url.includes("/:") && schema?.params === undefined)
    throw new Error(`${route} has names in its path: describe them in schema.params`)
  if (schema?.operationId === undefined || schema.summary === undefined || schema.response === undefined)
    throw new Error(`${route} is not described: set schema.operationId, summary and response`)
}

/** Throws the response for a caller without access. `idOf` resolves the uid of the path's application. */
export function requireAccess(
  caller: Caller,
  request: FastifyRequest,
  idOf: (app: string) => Promise<string>,
): undefined | Promise<void> {
  const { config } = request.routeOptions
  requireScope(caller, request.method, config)
  if (config.auth !== "app" || caller.appId === null) return undefined
  const { app_id: app } = request.params as { readonly app_id: string }
  return app === caller.appId ? undefined : requireOwn(caller.appId, app, idOf)
}

/** The checks that do not depend on the path. */
export function requireScope(
  caller: Caller,
  method: string,
  { auth: need, capability }: FastifyContextConfig,
): void {
  if (caller.access === "agent") throw refused("an agent's key can only connect an agent, to /api/v1/relay")
  // A route that needs only the capability to look changes nothing, except that a session can end itself.
  const reads = method === "GET" || method === "HEAD" || capability === "ViewBase"
  if (caller.access === "read" && !reads) throw refused("this key can only read")
  if ((need === "org" || need === "operator") && caller.appId !== null)
    throw refused("this needs a key of the whole organization")
  if (need === "operator" && caller.orgId !== DEFAULT_ORG)
    throw refused("this belongs to the deployment: it needs a key of the default organization")
  if (capability !== undefined) requireCapability(caller, capability)
}

/** For a request that needs more than its route does. */
export function requireCapability(caller: Caller, capability: Capability): void {
  if (!hasCapability(caller, capability)) throw refused(`this key lacks ${capability}`)
}

async function requireOwn(
  appId: string,
  named: string,
  idOf: (app: string) => Promise<string>,
): Promise<void> {
  if (!NAME.test(named) || (await idOf(named)) !== appId)
    throw ApiError.of(404, "not_found", `Entity not found: there is no application "${named}"`)
}

/** These fields affect the deliveries of other customers: an application's key cannot set them. */
const OPERATORS = ["retry", "concurrency", "ordered"] as const

export function refuseOperatorFields({ appId }: Caller, body: object): void {
  const field = OPERATORS.find((one) => Object.hasOwn(body, one))
  if (appId !== null && field !== undefined)
    throw refused(`only a key of the whole organization can set ${field}`)
  // A customer's portal must not take the place of an agent of the operator's.
  const { url } = body as { readonly url?: unknown }
  if (appId !== null && typeof url === "string" && transportOf(url) === "relay")
    throw refused("only a key of the whole organization can set the URL of an agent")
}

export function hasCapability({ capabilities }: Caller, needed: Capability): boolean {
  if (capabilities === null || needed === "ViewBase") return true
  return [needed, ...(INCLUDED_IN[needed] ?? [])].some((one) => capabilities.includes(one))
}

/** Requests that came to a source. Their path, headers and query may hold secrets of the operator, and customers have the other keys. */
export function seesInbound({ appId }: Caller): boolean {
  return appId === null
}

function refused(detail: string): ApiError {
  return ApiError.of(403, "insufficient access", detail)
}
