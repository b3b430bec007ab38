/** The SQLite store: the contract over three threads, one that writes, one that looks up and one that lists. */
import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { MessageChannel } from "node:worker_threads"
import { PosthornError } from "../../core/errors.ts"
import type { Store } from "../store.ts"
import { Channel } from "./channel.ts"
import type { ExecutorOptions } from "./executor.ts"
import { LISTS, OPERATIONS, type OperationName, READS } from "./operations.ts"

export interface SqliteStoreOptions {
  readonly path: string
  /** False opens the file beside the process that owns it, for reading and operators' actions. */
  readonly own: boolean
  /** Opens a file that was moved to PostgreSQL all the same. */
  readonly openMoved?: boolean
  /** Told once, when the file can no longer be trusted. */
  onLost(error: PosthornError): void
}

export interface SqliteStore extends Store {
  /** A number above every token that was ever given out for this file. */
  openTokens(): Promise<number>
  /** For tests: the threads end as in a crash. */
  kill(): Promise<void>
}

export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { path, own, openMoved = false, onLost } = options
  if (path !== ":memory:") makeFolder(path)
  let told = false
  const tellOnce = (error: PosthornError) => {
    if (!told) onLost(error)
    told = true
  }
  const [writer, reader] = await bothOrNeither(
    ...openWriterAndReader({ path, role: own ? "owner" : "guest", openMoved }, tellOnce),
  )
  let closed = false
  let opened: Promise<Channel> | null = null
  /** Started with the first list: most programs that send need none. */
  const lister = async (): Promise<Channel> => {
    if (path === ":memory:" || closed) return reader
    opened ??= Channel.open({ path, role: "reader" }, tellOnce)
    return opened
  }
  const methods: { [name: string]: (...args: unknown[]) => Promise<unknown> } = {}
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    const channel = Object.hasOwn(READS, name) ? reader : writer
    methods[name] = Object.hasOwn(LISTS, name)
      ? async (...args) => (await lister()).call(name, args)
      : (...args) => channel.call(name, args)
  }
  return {
    ...(methods as unknown as Omit<SqliteStore, "settlesTogether" | "close" | "kill">),
    settlesTogether: true,
    async close() {
      told = true
      closed = true
      // The writer last: it brings all that is left in the log into the file.
      await (await opened)?.close()
      await reader.close()
      await writer.close()
    },
    async kill() {
      told = true
      closed = true
      await Promise.all([writer.kill(), reader.kill(), opened?.then((channel) => channel.kill())])
    },
  }
}

/** A database in memory belongs to its connection: everything runs on the one thread there. */
function openWriterAndReader(
  writing: ExecutorOptions,
  onLost: (error: PosthornError) => void,
): [Promise<Channel>, Promise<Channel>] {
  const { path } = writing
  if (path === ":memory:") {
    const both = Channel.open(writing, onLost)
    return [both, both]
  }
  const { port1, port2 } = new MessageChannel()
  return [
    Channel.open({ ...writing, copying: port1 }, onLost),
    Channel.open({ path, role: "reader", copying: port2 }, onLost),
  ]
}

/** The threads start side by side; if one cannot, the other is ended. */
async function bothOrNeither(...opening: [Promise<Channel>, Promise<Channel>]): Promise<[Channel, Channel]> {
  try {
    return await Promise.all(opening)
  } catch (error) {
    for (const result of await Promise.allSettled(opening))
      if (result.status === "fulfilled") await result.value.kill()
    throw error
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
  } catch (cause) {
    throw new PosthornError("store_unavailable", `cannot create the folder of ${path}`, {
      cause,
      field: "store",
    })
  }
}
