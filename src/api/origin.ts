/** The address that a client used, for links where no public URL is configured. */
import type { FastifyRequest } from "fastify"

export function originOf(request: FastifyRequest): string {
  return `${request.protocol}://${request.host}`
}
