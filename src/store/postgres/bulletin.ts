/** Notes between processes by LISTEN and NOTIFY: gathered for some milliseconds, and never inside a send's transaction. */
import { randomUUID } from "node:crypto"
import type pg from "pg"
import type { Bulletin, Note } from "../../observe/bulletin.ts"
import type { WebhookEvent } from "../../observe/events.ts"
import type { Database } from "./connection.ts"
import type { Statement } from "./statement.ts"

/** The first note goes at once; those that follow it wait for so long. */
const GATHER_MS = 20
/** PostgreSQL takes less than 8000 bytes. */
const MOST_BYTES = 7500
const LONGEST_ERROR = 500
/** While notes cannot be sent, so many are kept; older ones are dropped, which the poll makes good. */
const MOST_WAITING = 10_000
const FIRST_RETRY_MS = 200
const LONGEST_RETRY_MS = 5000

const NOTIFY: Statement = { name: "bulletin.notify", text: "SELECT pg_notify('posthorn', $1)" }

export class PostgresBulletin implements Bulletin {
  readonly #database: Database
  /** A process hears its own notes too. */
  readonly #self = randomUUID()
  #read: (note: Note) => void = () => {}
  #client: pg.Client | null = null
  #waiting: Note[] = []
  #gathering: NodeJS.Timeout | null = null
  #retry: NodeJS.Timeout | null = null
  #sending = false
  #closed = false

  constructor(database: Database) {
    this.#database = database
  }

  async start(read: (note: Note) => void): Promise<void> {
    this.#read = read
    await this.#listen()
  }

  post(note: Note): void {
    if (this.#closed) return
    const repeated = note.kind === "due" || note.kind === "tasks" || note.kind === "listening"
    if (repeated && this.#waiting.some(({ kind }) => kind === note.kind)) return
    this.#waiting.push(note)
    if (this.#waiting.length > MOST_WAITING) this.#waiting.shift()
    if (this.#gathering === null && !this.#sending) void this.#send()
  }

  async close(): Promise<void> {
    this.#closed = true
    if (this.#gathering !== null) clearTimeout(this.#gathering)
    if (this.#retry !== null) clearTimeout(this.#retry)
    const client = this.#client
    this.#client = null
    await client?.end().catch(() => {})
  }

  async #send(): Promise<void> {
    this.#sending = true
    const text = this.#take()
    try {
      await this.#database.run(NOTIFY, [text])
    } catch {
      // Only a hint; whoever missed it looks by itself.
    }
    this.#sending = false
    if (this.#closed) return
    this.#gathering = setTimeout(() => {
      this.#gathering = null
      if (this.#waiting.length > 0) void this.#send()
    }, GATHER_MS)
  }

  /** As many notes as fit, the events of all of them together. */
  #take(): string {
    const notes: string[] = []
    let bytes = 100
    while (this.#waiting.length > 0) {
      const text = JSON.stringify(brief(this.#waiting[0]!))
      bytes += Buffer.byteLength(text) + 1
      if (bytes > MOST_BYTES && notes.length > 0) break
      notes.push(text)
      this.#waiting.shift()
    }
    return `{"from":"${this.#self}","notes":[${notes.join()}]}`
  }

  async #listen(): Promise<void> {
    let client: pg.Client | null = null
    // Called while it is still connecting, too.
    client = await this.#database.connect(() => this.#lost(client))
    client.on("notification", ({ payload }) => this.#hear(payload ?? ""))
    await client.query("LISTEN posthorn")
    if (this.#closed) return void client.end().catch(() => {})
    this.#client = client
  }

  #hear(payload: string): void {
    const { from, notes } = JSON.parse(payload) as { from: string; notes: Note[] }
    if (from === this.#self) return
    for (const note of notes) this.#read(note)
  }

  #lost(client: pg.Client | null): void {
    if (client === null || this.#client !== client) return
    this.#client = null
    client.end().catch(() => {})
    this.#listenAgain(FIRST_RETRY_MS)
  }

  #listenAgain(delayMs: number): void {
    if (this.#closed) return
    this.#retry = setTimeout(
      () =>
        this.#listen().then(
          // Whatever was said meanwhile was missed.
          () => this.#read({ kind: "due" }),
          () => this.#listenAgain(Math.min(delayMs * 2, LONGEST_RETRY_MS)),
        ),
      delayMs * (0.5 + Math.random() / 2),
    )
  }
}

/** An error may quote a long answer: another process gets its beginning. */
function brief(note: Note): Note {
  if (note.kind !== "events") return note
  return { kind: "events", events: note.events.map(briefEvent) }
}

function briefEvent(event: WebhookEvent): WebhookEvent {
  switch (event.type) {
    case "delivery.dead":
      return { ...event, last_error: event.last_error?.slice(0, LONGEST_ERROR) ?? null }
    case "delivery.attempt":
      return { ...event, error: event.error?.slice(0, LONGEST_ERROR) ?? null }
    case "delivery.delivered":
      return event
  }
}
