/** The process channel over LISTEN and NOTIFY. Notes are sent in batches, never in the transaction of a send. */
import { randomUUID } from "node:crypto"
import pg from "pg"
import { Backoff } from "../../core/backoff.ts"
import type { Logger } from "../../observe/log.ts"
import type { Note, ProcessChannel } from "../../observe/process-channel.ts"
import { disconnect, TIMEOUT_MS } from "./client.ts"
import type { Database } from "./connection.ts"
import { toPosthornError } from "./errors.ts"
import { OutgoingNotes, readNotifyPayload } from "./notify-payload.ts"
import type { Statement } from "./statement.ts"

/** The first note is sent at once, later ones in a batch after this time. */
const GATHER_MS = 20
/** A silent connection may be dead. A process hears its own notes too, and checks this often that it does. */
const CHECK_MS = 5000
/** After this many checks without a note of its own, a process sends an empty one. */
const CHECKS_IN_SILENCE = 6
const COMPLAIN_EVERY_MS = 60_000
/** How long a close waits for the last notes to be sent. */
const LAST_NOTES_MS = 1500

/** One channel for each schema, so that two installations in one database do not hear each other. */
const CHANNEL = "'posthorn_' || (SELECT relnamespace FROM pg_class WHERE oid = 'lanes'::regclass)"
const NOTIFY: Statement = {
  name: "process_channel.notify",
  text: `SELECT pg_notify(${CHANNEL}, payload) FROM unnest($1::text[]) AS payload`,
}

export class PostgresProcessChannel implements ProcessChannel {
  readonly #database: Database
  readonly #logger: Logger
  readonly #self = randomUUID()
  readonly #outgoing = new OutgoingNotes(this.#self)
  #read: (note: Note) => void = () => {}
  #client: pg.Client | null = null
  /** Whether the connection has heard a note. Through a pooler in transaction mode it never does, and a new one would not either. */
  #hears = false
  /** Our own latest note. If two checks in a row find it not heard, the connection is dead. */
  #echo: "heard" | "awaited" | "late" = "heard"
  #silentChecks = 0
  readonly #backoff = new Backoff({ firstMs: 200, longestMs: 5000, random: Math.random })
  #gathering: NodeJS.Timeout | null = null
  #retry: NodeJS.Timeout | null = null
  #checks: NodeJS.Timeout | null = null
  #forgetUp: () => void = () => {}
  #complainedAt = Number.NEGATIVE_INFINITY
  /** The notes in flight. A second batch at the same time could overtake them. */
  #sending: Promise<unknown> | null = null
  #closed = false

  constructor(database: Database, logger: Logger) {
    this.#database = database
    this.#logger = logger
  }

  async start(read: (note: Note) => void): Promise<void> {
    this.#read = read
    await this.#listen().catch((error) => {
      throw toPosthornError(error)
    })
    // The outage may have broken this connection too, without an error on it.
    this.#forgetUp = this.#database.onUp(() => this.#renew())
    this.#checks = setInterval(() => this.#check(), CHECK_MS).unref()
  }

  post(note: Note): void {
    if (this.#closed) return
    this.#outgoing.add(note)
    this.#sendSoon()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#forgetUp()
    for (const timer of [this.#gathering, this.#retry, this.#checks]) if (timer !== null) clearTimeout(timer)
    const client = this.#client
    this.#client = null
    await Promise.all([this.#sendLast(), client === null ? null : disconnect(client)])
  }

  /** Without them, other processes would miss the last events of this one. */
  async #sendLast(): Promise<void> {
    const { promise: deadline, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, LAST_NOTES_MS)
    const send = async () => {
      await this.#sending
      while (!this.#outgoing.isEmpty) await this.#database.run(NOTIFY, [this.#outgoing.take()])
    }
    // A failure is no news: the database went away before the process did.
    await Promise.race([send().catch(() => {}), deadline])
    clearTimeout(timer)
  }

  #sendSoon(): void {
    if (this.#gathering === null && this.#sending === null) void this.#send()
  }

  async #send(): Promise<void> {
    this.#silentChecks = 0
    if (this.#echo === "heard") this.#echo = "awaited"
    this.#sending = this.#database.run(NOTIFY, [this.#outgoing.take()])
    try {
      await this.#sending
    } catch {
      // Notes are hints: the other processes poll.
      this.#echo = "heard"
    }
    this.#sending = null
    if (this.#closed) return
    this.#complain()
    this.#gathering = setTimeout(() => {
      this.#gathering = null
      if (!this.#outgoing.isEmpty) void this.#send()
    }, GATHER_MS)
  }

  #complain(): void {
    const { dropped } = this.#outgoing
    if (dropped === 0 || performance.now() - this.#complainedAt < COMPLAIN_EVERY_MS) return
    this.#complainedAt = performance.now()
    this.#outgoing.dropped = 0
    this.#logger.warn({ dropped }, "Events come too fast for other processes, which do not hear all of them")
  }

  async #listen(): Promise<void> {
    let client: pg.Client | null = null
    // The callback also runs while the client is still connecting.
    client = await this.#database.connect(() => this.#lost(client), TIMEOUT_MS)
    try {
      client.on("notification", ({ payload }) => this.#hear(payload ?? ""))
      const { rows } = await client.query(this.#database.schema.bindText(`SELECT ${CHANNEL} AS channel`))
      await client.query(`LISTEN ${pg.escapeIdentifier(rows[0].channel)}`)
    } catch (error) {
      await disconnect(client)
      throw error
    }
    if (this.#closed || this.#client !== null) return disconnect(client)
    this.#client = client
    this.#backoff.reset()
    this.#hears = false
    this.#echo = "heard"
    this.#sendSoon()
  }

  #hear(payload: string): void {
    const received = readNotifyPayload(payload)
    if (received === null) return
    if (received.from !== this.#self) for (const note of received.notes) this.#read(note)
    else {
      this.#hears = true
      this.#echo = "heard"
    }
  }

  /** Two checks, because after a blocked event loop timers run before the notes that came meanwhile. */
  #check(): void {
    if (this.#echo === "late") return this.#hears ? this.#lost(this.#client) : undefined
    if (this.#echo === "awaited") this.#echo = "late"
    else if (++this.#silentChecks >= CHECKS_IN_SILENCE) this.#sendSoon()
  }

  #lost(client: pg.Client | null): void {
    if (client !== null && this.#client === client) this.#renew(this.#backoff.nextMs())
  }

  #renew(delayMs = 0): void {
    const client = this.#client
    this.#client = null
    if (client !== null) void disconnect(client)
    this.#listenAgain(delayMs)
  }

  #listenAgain(delayMs: number): void {
    if (this.#closed) return
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#retry = setTimeout(
      () =>
        this.#listen().then(
          // Notes of the time without a connection are lost.
          () => this.#read({ kind: "due" }),
          () => this.#listenAgain(this.#backoff.nextMs()),
        ),
      delayMs,
    )
  }
}
