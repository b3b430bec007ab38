/**
 * Pages with payloads, or with the responses of receivers. A page ends before these exceed 4 MiB: reading and serializing 250 payloads of
 * 1 MiB took 700 MB of memory for each request, and blocked the event loop.
 */
import type { Attempt } from "../resources/attempts.ts"
import type { Message } from "../resources/messages.ts"
import type { List } from "../resources/paging.ts"
import type { Tenant } from "../tenant.ts"

const MOST_BYTES = 4_194_304

interface Asked {
  readonly limit?: number
  readonly cursor?: string | null
}

interface PayloadPage<R> {
  readonly list: List<R>
  /** The messages of the list, by id. Those that were removed meanwhile are missing. */
  readonly found: ReadonlyMap<string, Message>
}

/** `read` returns a page without payloads. The result has at least one entry of it, with a payload of any size. */
export async function readPayloadPage<R>(
  { messages }: Pick<Tenant, "messages">,
  asked: Asked,
  read: (asked: Asked) => Promise<List<R>>,
  messageIdOf: (row: R) => string,
): Promise<PayloadPage<R>> {
  const page = await read(asked)
  const ids = page.data.map(messageIdOf)
  const sizes = await messages.payloadSizes(ids)
  const limit = limitFor(
    asked,
    ids.map((id) => sizes.get(id) ?? 0),
  )
  const list = limit === null ? page : await read({ ...asked, limit })
  return { list, found: await messages.getMany(list.data.map(messageIdOf), true) }
}

/** A response has at most 64 KiB: a page of them can be read, but is much longer as JSON. */
export async function readAttemptPage(
  asked: Asked,
  read: (asked: Asked) => Promise<List<Attempt>>,
): Promise<List<Attempt>> {
  const page = await read(asked)
  const limit = limitFor(
    asked,
    page.data.map(({ responseBody }) => responseBody?.byteLength ?? 0),
  )
  return limit === null ? page : read({ ...asked, limit })
}

/** How many entries fit into a page, at least one; null: all of these. */
function limitFor({ cursor }: Asked, sizes: readonly number[]): number | null {
  let sum = 0
  const fitting = (cursor?.startsWith("-") ? sizes.toReversed() : sizes).findIndex((bytes) => {
    sum += bytes
    return sum > MOST_BYTES
  })
  return fitting < 0 ? null : Math.max(1, fitting)
}
