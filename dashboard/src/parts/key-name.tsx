/** The key that acknowledged an alert or made a silence. */
import { pathTo } from "../api.ts"
import { useResource } from "../resource.ts"
import type { Key } from "../types.ts"

/** The name of a key; its id where it was removed. Null: a login link or one of Svix's tokens, which have no key. */
export function KeyName({ id }: { readonly id: string | null }) {
  const { data } = useResource<Key>(id === null ? null : pathTo("/key", id))
  if (id === null) return <span class="faint">a login link or a token</span>
  return data === null ? <code>{id}</code> : <span title={id}>{data.name}</span>
}
