/** One endpoint. */
import { EndpointView } from "../parts/endpoint/view.tsx"
import type { PageProps } from "../routed.tsx"

export function EndpointPage({ params: { app = "", id = "" } }: PageProps) {
  return <EndpointView appId={app} id={id} />
}
