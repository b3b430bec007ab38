/** What every route is given. */

import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox"
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from "fastify"
import type { Posthorn } from "../posthorn.ts"
import type { Tenant } from "../tenant.ts"

export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** Where Svix's clients look for it. */
export const PREFIX = "/api/v1"

export interface Context {
  readonly posthorn: Posthorn
  /** Where others reach the server; null when nobody said. */
  readonly publicUrl: string | null
  /** The tenant of the key that came with the request. Ids made through it are the same when the request is repeated. */
  tenant(request: FastifyRequest): Tenant
}

/** One for each resource. */
export type Routes = (app: Api, context: Context) => void
