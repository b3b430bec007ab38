/** Svix's own client against a server of ours, with every answer held to the OpenAPI document. */
import { ApiException, Svix } from "svix"
import type { ApiServer } from "./server.ts"

export function svixFor(server: ApiServer, key = server.key): Svix {
  return new Svix(key, {
    serverUrl: server.url,
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      const { status, headers, url } = response
      const text = await response.clone().text()
      server.contract.check(init?.method ?? "GET", new URL(url).pathname, {
        status,
        type: headers.get("content-type"),
        text,
      })
      return response
    },
  })
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
