/** Svix's own client against a server of ours, with every answer held to the OpenAPI document. */
import { ApiException, Svix } from "svix"
import { fetchChecked } from "./checked.ts"
import type { ApiServer } from "./server.ts"

/** `onAnswer` is told which operation answered, and with which status. */
export function svixFor(
  server: ApiServer,
  key = server.key,
  onAnswer?: (operation: string | null, status: number) => void,
): Svix {
  return new Svix(key, { serverUrl: server.url, fetch: fetchChecked(server.contract, onAnswer) })
}

/** How a call was refused, as the client tells it. */
export async function refusal(call: Promise<unknown>): Promise<{ status: number; body: unknown }> {
  try {
    await call
  } catch (error) {
    if (error instanceof ApiException) return { status: error.code, body: error.body }
    throw error
  }
  throw new Error("the call was not refused")
}
