/** Reads server-sent events (the HTML standard, section 9.2). */

export interface ServerSentEvent {
  /** The last id that was sent, in this block or before. */
  readonly id: string | null
  /** Null: a block that has only an id or a comment. */
  readonly event: { readonly kind: string; readonly data: string } | null
}

export async function* serverSentEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder()
  let rest = ""
  let id: string | null = null
  for await (const chunk of chunks) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n\r?\n/)
    rest = blocks.pop()!
    for (const block of blocks) {
      const fields = fieldsOf(block)
      id = fields.get("id") ?? id
      const data = fields.get("data")
      yield { id, event: data === undefined ? null : { kind: fields.get("event") ?? "message", data } }
    }
  }
}

/** A field that comes twice has several lines. */
function fieldsOf(block: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  for (const line of block.split(/\r?\n/)) {
    const [, name, value = ""] = /^([^:]+)(?:: ?(.*))?$/.exec(line) ?? []
    if (name === undefined) continue
    const before = fields.get(name)
    fields.set(name, before === undefined || name !== "data" ? value : `${before}\n${value}`)
  }
  return fields
}
