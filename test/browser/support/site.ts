/**
 * Posthorn as an operator runs it, for the dashboard's tests: the real programs on SQLite, or on PostgreSQL with two workers.
 * The store may be filled before the programs start: see `world.ts`.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Clock } from "../../../src/core/clock.ts"
import { openPosthorn, type Posthorn } from "../../../src/posthorn.ts"
import { programFile } from "../../support/bundled.ts"
import { ON } from "../../support/combination.ts"
import { LOOPBACK } from "../../support/harness.ts"
import { createMigratedDatabase } from "../../support/migrated-database.ts"
import { Program } from "../../support/process.ts"
import { Receiver } from "../../support/receiver.ts"
import { freePort } from "../../support/servers/port.ts"

export const API_KEY = "the-key-of-the-browser-tests"
const ENCRYPTION_KEY = "5".repeat(64)
const LISTENS = /"msg":"server \d+ listens on/
const WORKS = /"msg":"worker \d+ /

export interface SiteOptions {
  /** Further variables of the programs, such as `POSTHORN_PUBLIC_URL`. */
  readonly environment?: { readonly [variable: string]: string }
  /** Fills the store before the programs start. Deliveries are made meanwhile, by the clock if one is given. */
  readonly fill?: (posthorn: Posthorn, receiver: Receiver) => Promise<void>
  readonly clock?: Clock
  /** Done when the server answers, such as connecting an agent. */
  readonly after?: (site: Site) => Promise<void>
}

export class Site {
  /** `http://127.0.0.1:PORT`, also after a restart. */
  readonly url: string
  /** For endpoints. It answers 200 unless told. */
  readonly receiver: Receiver
  readonly #environment: { readonly [variable: string]: string }
  readonly #store: string
  readonly #closings: (() => Promise<void>)[]
  #programs: Program[] = []

  private constructor(
    port: number,
    receiver: Receiver,
    store: string,
    closings: (() => Promise<void>)[],
    more: SiteOptions["environment"],
  ) {
    this.url = `http://127.0.0.1:${port}`
    this.receiver = receiver
    this.#store = store
    this.#closings = closings
    this.#environment = {
      POSTHORN_HOST: "127.0.0.1",
      PORT: `${port}`,
      POSTHORN_STORE: store,
      POSTHORN_API_KEY: API_KEY,
      POSTHORN_ENCRYPTION_KEY: ENCRYPTION_KEY,
      POSTHORN_EGRESS_ALLOW: LOOPBACK.allow!.join(" "),
      POSTHORN_EGRESS_PORTS: "any",
      POSTHORN_CLOSE_TIMEOUT_MS: "1000",
      // A login link is printed where `npm start` starts the server.
      npm_lifecycle_event: "start",
      ...more,
    }
  }

  static async start({ environment, fill, clock, after }: SiteOptions = {}): Promise<Site> {
    const { store, remove } = await newStore()
    const receiver = await Receiver.start()
    const site = new Site(await freePort(), receiver, store, [remove, () => receiver.close()], environment)
    try {
      if (fill !== undefined) await site.#fill(fill, clock)
      await site.boot()
      await after?.(site)
    } catch (error) {
      await site.close()
      throw error
    }
    return site
  }

  /** Starts the programs, at first or after `stop`. */
  async boot(): Promise<void> {
    const serve = this.#run(ON === "sqlite" ? ["serve"] : ["serve", "--no-deliver"])
    const workers = ON === "sqlite" ? [] : [this.#run(["worker"]), this.#run(["worker"])]
    this.#programs = [serve, ...workers]
    await Promise.all([serve.line(LISTENS), ...workers.map((worker) => worker.line(WORKS))])
  }

  /** As an operator stops them. */
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    for (const { process } of this.#programs) process.kill(signal)
    await Promise.all(this.#programs.map(({ ended }) => ended))
    this.#programs = []
  }

  async restart(): Promise<void> {
    await this.stop()
    await this.boot()
  }

  /** Calls the API below `/api/v1` as an admin; rejects unless it succeeds. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for
  async call(method: string, path: string, body?: unknown): Promise<any> {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${API_KEY}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return text === "" ? null : JSON.parse(text)
  }

  /** A link that signs one browser in to the dashboard. */
  async loginLink({ readOnly = false } = {}): Promise<string> {
    return (await this.call("POST", "/auth/dashboard-link", { readOnly })).url
  }

  /** A link to the portal of an application, with what `POST /auth/app-portal-access` takes. */
  async portalLink(app: string, access: object = {}): Promise<string> {
    return (await this.call("POST", `/auth/app-portal-access/${app}`, access)).url
  }

  /** The login link that the server prints at its start. */
  async printedLink(): Promise<string> {
    const line = await this.#programs[0]!.line(/#code=/)
    return line.trim()
  }

  /** Runs before the programs end. */
  whenClosed(closing: () => Promise<void>): void {
    this.#closings.push(closing)
  }

  async close(): Promise<void> {
    const [remove, closeReceiver, ...closings] = this.#closings
    for (const close of closings) await close()
    await Promise.all(this.#programs.map((program) => program.kill()))
    await closeReceiver!()
    await remove!()
  }

  async #fill(fill: NonNullable<SiteOptions["fill"]>, clock?: Clock): Promise<void> {
    const posthorn = await openPosthorn(
      {
        store: this.#store,
        encryptionKey: ENCRYPTION_KEY,
        egress: LOOPBACK,
        logger: "silent",
        closeTimeoutMs: 1000,
      },
      clock === undefined ? {} : { clock },
    )
    try {
      await fill(posthorn, this.receiver)
    } finally {
      await posthorn.close()
    }
  }

  #run(args: readonly string[]): Program {
    const variables = Object.entries(this.#environment).map(([name, value]) => `${name}=${value}`)
    return Program.start(programFile("posthorn"), args, { under: ["env", "-C", tmpdir(), ...variables] })
  }
}

interface NewStore {
  readonly store: string
  remove(): Promise<void>
}

async function newStore(): Promise<NewStore> {
  if (ON !== "sqlite") {
    const { url, drop } = await createMigratedDatabase()
    return { store: url, remove: drop }
  }
  const folder = mkdtempSync(join(tmpdir(), "posthorn-browser-"))
  return {
    store: `sqlite:${join(folder, "posthorn.db")}`,
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}
