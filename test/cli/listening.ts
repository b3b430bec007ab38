/** `posthorn listen` against a server, with a local program behind it. */
import { onTestFinished } from "vitest"
import type { KeyInput } from "../../src/resources/keys.ts"
import { ApiServer, type ApiServerOptions } from "../api/support/server.ts"
import { Receiver } from "../support/receiver.ts"
import { Desk, type Started } from "./posthorn.ts"

const SOURCE_URL = /^(https?:\/\/\S+\/in\/\S+)$/

export class ListenWorld {
  readonly server: ApiServer
  readonly local: Receiver
  readonly desk: Desk

  private constructor(server: ApiServer, local: Receiver, desk: Desk) {
    this.server = server
    this.local = local
    this.desk = desk
  }

  static async start(options: ApiServerOptions = {}): Promise<ListenWorld> {
    const server = await ApiServer.start(options)
    const local = await Receiver.start()
    onTestFinished(() => local.close())
    const desk = new Desk({ POSTHORN_SERVER: server.url, POSTHORN_API_KEY: server.key })
    return new ListenWorld(server, local, desk)
  }

  /** The local program's address. */
  get forward(): string {
    return this.local.url("/").slice(0, -1)
  }

  /** Resolves when it is connected. */
  listen(...more: readonly string[]) {
    return this.listenTo(this.forward, ...more)
  }

  async listenTo(forward: string, ...more: readonly string[]) {
    const listen = this.desk.start(["listen", "--forward", forward, ...more])
    await listen.said("Connected; Ctrl-C ends it.")
    return { listen, url: urlOf(listen.lines) }
  }

  async key(input: KeyInput): Promise<string> {
    return (await this.server.posthorn.keys.create(input)).token
  }

  /** What runs have left on the server. */
  async left(): Promise<unknown[]> {
    const { applications, keys, endpoints, sources } = this.server.posthorn
    const apps = (await applications.list()).data
    const inApps = await Promise.all(
      apps.map(async ({ id }) => [...(await endpoints.list(id)).data, ...(await sources.list(id)).data]),
    )
    const agents = (await keys.list()).data.filter(
      ({ name, revokedAt }) => name.startsWith("listen-") && revokedAt === null,
    )
    return [...apps.filter(({ uid }) => uid !== "acme"), ...inApps.flat(), ...agents]
  }
}

/** The line of the source's URL. */
export function urlOf(lines: readonly string[]): string {
  const found = lines.flatMap((line) => SOURCE_URL.exec(line)?.[1] ?? [])
  if (found.length !== 1) throw new Error(`there is not one URL in ${JSON.stringify(lines)}`)
  return found[0]!
}

/** Ends it as Ctrl-C does. */
export async function interrupted(listen: Started) {
  listen.interrupt()
  return listen.ended
}
