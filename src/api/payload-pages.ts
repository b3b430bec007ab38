/**
 * Pages of messages with their payloads. A page ends before its payloads exceed 4 MiB: reading and serializing 250 payloads of 1 MiB took
 * 700 MB of memory for each request, and blocked the event loop.
 */
import type { Message } from "../resources/messages.ts"
import type { List } from "../resources/paging.ts"
import type { Tenant } from "../tenant.ts"

const MOST_PAYLOAD_BYTES = 4_194_304

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
  let sum = 0
  const fitting = (asked.cursor?.startsWith("-") ? ids.toReversed() : ids).findIndex((id) => {
    sum += sizes.get(id) ?? 0
    return sum > MOST_PAYLOAD_BYTES
  })
  const list = fitting < 0 ? page : await read({ ...asked, limit: Math.max(1, fitting) })
  return { list, found: await messages.getMany(list.data.map(messageIdOf), true) }
}
