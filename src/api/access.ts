/** What a route needs and whether a caller has it. The one place that decides. */
import type { FastifyContextConfig, FastifyRequest, RouteOptions } from "fastify"
import type { Capability } from "../resources/keys.ts"
import type { Caller } from "./caller.ts"
import { ApiError } from "./errors.ts"

/**
 * `org`: keys of the whole tenant. `app`: those, and keys of the application in the path. `read`: every key of the tenant.
 * `none`: anybody.
 */
export type Need = "org" | "app" | "read" | "none"

declare module "fastify" {
  interface FastifyContextConfig {
    auth?: Need
    /** What a key with a list of capabilities must have among them. */
    capability?: Capability
  }
}

/** Anything else cannot be one, and is not asked of the store. */
const NAME = /^[\w.-]{1,256}$/

/** A capability that is more than another. */
const INCLUDED_IN: { readonly [C in Capability]?: readonly Capability[] } = {
  ViewEndpointSecret: ["ManageEndpointSecret", "ManageEndpoint"],
  ManageEndpointSecret: ["ManageEndpoint"],
}

/** A route that does not say what it needs and what it takes must not start. */
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

/** Throws what the caller is told. Whether the path's application is theirs is asked of `idOf`, if it is named by a uid. */
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

/** All that can be said without the path. */
export function requireScope(
  caller: Caller,
  method: string,
  { auth: need, capability }: FastifyContextConfig,
): void {
  if (caller.access === "read" && method !== "GET" && method !== "HEAD")
    throw refused("this key can only read")
  if (need === "org" && caller.appId !== null) throw refused("this needs a key of the whole organization")
  if (capability !== undefined && !has(caller, capability)) throw refused(`this key lacks ${capability}`)
}

async function requireOwn(
  appId: string,
  named: string,
  idOf: (app: string) => Promise<string>,
): Promise<void> {
  if (!NAME.test(named) || (await idOf(named)) !== appId)
    throw ApiError.of(404, "not_found", `Entity not found: there is no application "${named}"`)
}

/** What weighs on everybody's deliveries is not for the customer whose endpoint it is. */
const OPERATORS = ["retry", "concurrency", "ordered"] as const

export function refuseOperatorFields({ appId }: Caller, body: object): void {
  const field = OPERATORS.find((one) => Object.hasOwn(body, one))
  if (appId !== null && field !== undefined)
    throw refused(`only a key of the whole organization can set ${field}`)
}

function has({ capabilities }: Caller, needed: Capability): boolean {
  if (capabilities === null) return true
  return [needed, ...(INCLUDED_IN[needed] ?? [])].some((one) => capabilities.includes(one))
}

function refused(detail: string): ApiError {
  return ApiError.of(403, "insufficient access", detail)
}
