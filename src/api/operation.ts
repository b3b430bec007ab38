/** The options of a route: who may call it, and what the OpenAPI document says about it. */
import type { FastifyContextConfig, FastifySchema } from "fastify"

export function operation<S extends FastifySchema>(
  operationId: string,
  summary: string,
  { auth, capability, always, ownIdempotency, isRecorded, ...schema }: FastifyContextConfig & S,
) {
  const config = { auth, capability, always, ownIdempotency, isRecorded } as FastifyContextConfig
  return { config, schema: { operationId, summary, ...schema } as unknown as S }
}
