/** The context that routes are registered with. */

import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox"
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from "fastify"
import type { SettingInForce } from "../config.ts"
import type { Posthorn } from "../posthorn.ts"
import type { Tenant } from "../tenant.ts"
import type { Identify } from "./auth.ts"
import type { ChangeLog } from "./change-log.ts"
import type { RequestLog } from "./logging.ts"
import type { SessionCookies } from "./session-cookies.ts"

export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** As in Svix's API. */
export const PREFIX = "/api/v1"

export interface Context {
  readonly posthorn: Posthorn
  /** The address under which clients reach the server; null when it is not configured. */
  readonly publicUrl: string | null
  /** The caller's tenant. Its ids are the same when an idempotent request is repeated. */
  tenant(request: FastifyRequest): Tenant
  readonly requestLog: RequestLog
  readonly identify: Identify
  readonly cookies: SessionCookies
  readonly changes: Pick<ChangeLog, "settled">
  /** Those that the server was started with, without secrets. */
  readonly settings: readonly SettingInForce[]
  /** Whether the key of an earlier request is still good; rejects when the store cannot say. */
  isStillValid(request: FastifyRequest): Promise<boolean>
}

/** Registers the routes of one resource. */
export type Routes = (app: Api, context: Context) => void
