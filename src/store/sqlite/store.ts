/** The SQLite store: the contract over three threads, for writes, lookups and lists. */
import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { MessageChannel } from "node:worker_threads"
import { PosthornError } from "../../core/errors.ts"
import type { Instruments } from "../../observe/instruments.ts"
import type { Store } from "../store.ts"
import { Channel } from "./channel.ts"
import { toPosthornError } from "./errors.ts"
import type { ExecutorOptions } from "./executor.ts"
import { LaneSessions } from "./lane-sessions.ts"
import { guardLog, type LogGuard } from "./log-guard.ts"
import { LISTS, OPERATIONS, type OperationName, type OutsideThread, READS } from "./operations.ts"

export interface SqliteStoreOptions {
  readonly path: string
  /** False: another process may own the file; for reading and operators' actions. */
  readonly own: boolean
  /** Opens a file that was moved to PostgreSQL all the same. */
  readonly openMoved?: boolean
  readonly longLogPages?: number | undefined
  readonly instruments?: Instruments
  /** Called once, when the file has failed. */
  onLost(error: PosthornError): void
}

export interface SqliteStore extends Store {
  /** A number above every token that this file has given out. */
  openTokens(): Promise<number>
  /** For tests: the threads end as in a crash. */
  kill(): Promise<void>
}

export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { path, own, openMoved = false, longLogPages, instruments, onLost } = options
  if (path !== ":memory:") makeFolder(path)
  let told = false
  let closed = false
  let guard: LogGuard | null = null
  const channels: Promise<Channel>[] = []
  const open = (thread: ExecutorOptions): Promise<Channel> => {
    const lost = (error: PosthornError) => {
      if (told) return
      told = true
      void end(error)
      onLost(error)
    }
    const channel = Channel.open(thread, lost, instruments)
    channels.push(channel)
    return channel
  }
  /** Every thread ends as in a crash. The guard closes last, so that the log stays as it is. */
  const end = async (error: PosthornError): Promise<void> => {
    closed = true
    const opened = (await Promise.allSettled(channels)).filter((one) => one.status === "fulfilled")
    await Promise.all(opened.map(({ value }) => value.end(error)))
    guard?.close()
  }
  let [writer, reader]: Channel[] = []
  try {
    const writing: ExecutorOptions = { path, role: own ? "owner" : "guest", openMoved, longLogPages }
    ;[writer, reader] = await Promise.all(openWriterAndReader(writing, open))
    guard = guardLog(path)
  } catch (error) {
    await end(toPosthornError(error))
    throw toPosthornError(error)
  }
  let opened: Promise<Channel> | null = null
  /** Started with the first list: most programs never list. */
  const lister = async (): Promise<Channel> => {
    if (path === ":memory:" || closed) return reader!
    opened ??= open({ path, role: "reader" })
    return opened
  }
  const methods: { [name: string]: (...args: unknown[]) => Promise<unknown> } = {}
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    const channel = Object.hasOwn(READS, name) ? reader! : writer!
    methods[name] = Object.hasOwn(LISTS, name)
      ? async (...args) => (await lister()).call(name, args)
      : (...args) => channel.call(name, args)
  }
  const sessions = new LaneSessions(writer!)
  return {
    ...(methods as unknown as Omit<SqliteStore, OutsideThread | "kill">),
    acceptMany: (messages, tx) => sessions.accept(messages, tx),
    openLane: (claim, listener, knownVersion) => sessions.open(claim, listener, knownVersion),
    async close() {
      told = true
      closed = true
      await (await opened)?.close()
      const isSound = await reader!.close()
      // The writer closes last, after the guard: SQLite then copies the rest of the log into the file.
      await writer!.close(() => isSound && guard?.close())
      guard?.close()
    },
    async kill() {
      told = true
      await end(new PosthornError("closed", "the store was killed"))
    },
  }
}

/** A database in memory belongs to one connection, so it has one thread. */
function openWriterAndReader(
  writing: ExecutorOptions,
  open: (thread: ExecutorOptions) => Promise<Channel>,
): [Promise<Channel>, Promise<Channel>] {
  const { path } = writing
  if (path === ":memory:") {
    const both = open(writing)
    return [both, both]
  }
  const { port1, port2 } = new MessageChannel()
  return [open({ ...writing, copying: port1 }), open({ path, role: "reader", copying: port2 })]
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
