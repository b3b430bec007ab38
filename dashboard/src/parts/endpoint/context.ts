/** Values that the parts of an endpoint's page share. */
import { api, pathTo } from "../../api.ts"
import { refreshNow } from "../../refresh.ts"
import type { Endpoint } from "../../types.ts"
import { notify } from "../../ui/notices.tsx"

export interface OfEndpoint {
  readonly appId: string
  readonly endpoint: Endpoint
}

export function pathOf({ appId, endpoint }: OfEndpoint, ...parts: string[]): string {
  return pathTo("/app", appId, "/endpoint", endpoint.id, ...parts)
}

/** A call that takes no fields, such as `/pause`. */
export async function act(of: OfEndpoint, action: `/${string}`, done: string): Promise<void> {
  await api.post(pathOf(of, action))
  notify("good", done)
  refreshNow()
}
