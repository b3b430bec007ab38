/** A private Redis, for a whole run of the tests or for one test that breaks it. */
import { join } from "node:path"
import { Redis } from "ioredis"
import { Home } from "./home.ts"
import { freePort } from "./port.ts"
import { requireRedis } from "./programs.ts"
import { ServerProcess } from "./server-process.ts"

export class RedisServer {
  readonly url: string
  readonly #process: ServerProcess

  private constructor(url: string, process: ServerProcess) {
    this.url = url
    this.#process = process
  }

  /** Keeps nothing on disk: it comes back empty. `args` are as on its command line, such as `--maxmemory 2mb`. */
  static async start(args: readonly string[] = []): Promise<RedisServer> {
    const program = requireRedis()
    const home = await Home.create({ uid: process.getuid!(), gid: process.getgid!() })
    const port = await freePort()
    const socket = join(home.folder, "socket")
    const where = ["--port", `${port}`, "--bind", "127.0.0.1", "--unixsocket", socket, "--dir", home.folder]
    const what = ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]
    const server = new ServerProcess(home, program, [...where, ...what, ...args], () => checkRedis(socket))
    await server.start()
    return new RedisServer(`redis://127.0.0.1:${port}`, server)
  }

  async kill(): Promise<void> {
    await this.#process.stop("SIGKILL")
  }

  async start(): Promise<void> {
    await this.#process.start()
  }

  async close(): Promise<void> {
    await this.#process.close()
  }
}

/** Rejects unless a server answers at this URL, or at the path of a socket. */
export async function checkRedis(url: string): Promise<void> {
  const redis = new Redis(url, { lazyConnect: true, connectTimeout: 5000, retryStrategy: () => null })
  redis.on("error", () => {})
  try {
    await redis.connect()
    await redis.ping()
  } finally {
    redis.disconnect()
  }
}
