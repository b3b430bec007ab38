/** The servers of the API's figures: Posthorn as `posthorn serve` starts it, and a Fastify server that stores nothing. */
import { once } from "node:events"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Client } from "pg"
import { Program } from "../../test/support/process.ts"
import { eventType, temporaryFolder } from "./library.ts"
import { CONNECTIONS, EGRESS, NODE_OPTIONS } from "./settings.ts"

const MAIN = new URL("../../src/cli/main.ts", import.meta.url)
const LISTENS = /"msg":"server \d+ listens on (http:\/\/[^,]+),/
const FILE = "bench.db"
const KEY = "a-key-for-the-benchmark-alone"

/** The request of the raw client. */
export interface ApiServer {
  readonly origin: string
  readonly key: string
  close(): Promise<void>
}

export async function startBareApi(): Promise<ApiServer> {
  const program = Program.start(new URL("../children/bare-api.ts", import.meta.url), [], {
    talks: true,
    nodeOptions: NODE_OPTIONS,
  })
  const [{ origin }] = (await once(program.process, "message")) as [{ origin: string }]
  return { origin, key: KEY, close: async () => void (await program.kill()) }
}

export class PosthornServer implements ApiServer {
  readonly origin: string
  readonly key = KEY
  readonly #program: Program
  readonly #folder: string
  /** The URL of its PostgreSQL database; null: an SQLite file in the folder. */
  readonly #database: string | null

  private constructor(origin: string, program: Program, folder: string, database: string | null) {
    this.origin = origin
    this.#program = program
    this.#folder = folder
    this.#database = database
  }

  static async start(database: string | null = null): Promise<PosthornServer> {
    const folder = temporaryFolder()
    const store = database ?? `sqlite:${FILE}`
    const settings = ["--port", "0", "--host", "127.0.0.1", "--concurrency", `${CONNECTIONS}`]
    const egress = ["--egress-allow", EGRESS.allow.join(",")]
    const program = Program.start(MAIN, ["serve", "--store", store, ...settings, ...egress], {
      under: ["env", "-C", folder, `POSTHORN_API_KEY=${KEY}`],
      nodeOptions: NODE_OPTIONS,
    })
    const [, origin] = LISTENS.exec(await program.line(LISTENS))!
    return new PosthornServer(origin!, program, folder, database)
  }

  async createApplication(uid: string, endpoints: number, url: string): Promise<void> {
    await this.post("/app", { name: uid, uid })
    for (let i = 0; i < endpoints; i++)
      await this.post(`/app/${uid}/endpoint`, { url, filterTypes: [eventType(i)] })
  }

  /** Creates something. */
  async post<T>(path: string, body: object): Promise<T> {
    const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" }
    const url = `${this.origin}/api/v1${path}`
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
    if (response.status !== 201) throw new Error(`${path} was answered ${await response.text()}`)
    return (await response.json()) as T
  }

  get pid(): number {
    return this.#program.process.pid!
  }

  /** Stops the server and counts the messages in its store. */
  async stopAndCount(): Promise<number> {
    this.#program.process.kill("SIGTERM")
    await this.#program.ended
    return this.#database === null ? countInFile(join(this.#folder, FILE)) : countInDatabase(this.#database)
  }

  async close(): Promise<void> {
    await this.#program.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function countInFile(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true })
  const { messages } = db.prepare("SELECT count(*) AS messages FROM messages").get() as { messages: number }
  db.close()
  return messages
}

async function countInDatabase(url: string): Promise<number> {
  const client = new Client(url)
  await client.connect()
  const { rows } = await client.query("SELECT count(*)::int AS messages FROM posthorn.messages")
  await client.end()
  return rows[0].messages
}
