/** Pages of messages with their payloads. A page with large payloads ends early, so that serializing it does not block the event loop. */
import type { List } from "../resources/paging.ts"

const MOST_PAYLOAD_BYTES = 4_194_304

interface Asked {
  readonly limit?: number
  readonly cursor?: string | null
}

/** `bytesOf` returns the payload size of each entry. The page has at least one entry, of any size. */
export async function readPayloadPage<P extends { readonly list: List<unknown> }>(
  asked: Asked,
  read: (asked: Asked) => Promise<P>,
  bytesOf: (page: P) => readonly number[],
): Promise<P> {
  const page = await read(asked)
  const sizes = bytesOf(page)
  let sum = 0
  const fitting = (asked.cursor?.startsWith("-") ? sizes.toReversed() : sizes).findIndex((bytes) => {
    sum += bytes
    return sum > MOST_PAYLOAD_BYTES
  })
  return fitting < 0 ? page : read({ ...asked, limit: Math.max(1, fitting) })
}
