/** Where a server of the tests lives: a temporary folder, perhaps with a small disk in it, under a watchdog. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process"
import { chownSync, existsSync, mkdirSync, mkdtempSync, statfsSync } from "node:fs"
import { freemem, tmpdir } from "node:os"
import { join } from "node:path"
import type { Account } from "./account.ts"
import { Watchdog } from "./watchdog.ts"

const MEMORY = "/dev/shm"
/** More than the largest tests write: a million rows, and as much write-ahead log as PostgreSQL lets pile up. */
const ENOUGH_BYTES = 6 * 1024 ** 3

export class Home {
  readonly folder: string
  /** Where the server keeps its data, as the server sees it. */
  readonly dataFolder: string
  readonly watchdog: Watchdog
  readonly #account: Account
  readonly #hasDisk: boolean

  private constructor(folder: string, account: Account, watchdog: Watchdog, hasDisk: boolean) {
    this.folder = folder
    this.dataFolder = hasDisk ? join(folder, "disk", "data") : join(folder, "data")
    this.watchdog = watchdog
    this.#account = account
    this.#hasDisk = hasDisk
  }

  static async create(account: Account, diskBytes?: number, inMemory = true): Promise<Home> {
    const folder = mkdtempSync(join(inMemory ? roomyFolder() : tmpdir(), "posthorn-server-"))
    chownSync(folder, account.uid, account.gid)
    if (diskBytes === undefined) return new Home(folder, account, await Watchdog.start(folder), false)
    mkdirSync(join(folder, "disk"))
    // Nobody else sees the disk, and it goes when the watchdog ends. Without root, a user namespace gives the right to mount.
    const mayMount = isRoot()
    const under = ["unshare", ...(mayMount ? [] : ["--map-root-user"]), "--mount"]
    const { uid, gid } = mayMount ? account : { uid: 0, gid: 0 }
    const options = `size=${diskBytes},uid=${uid},gid=${gid},mode=700`
    return new Home(folder, account, await Watchdog.start(folder, under, options), true)
  }

  /** A path of the server as this process sees it. */
  seen(path: string): string {
    return this.#hasDisk ? `/proc/${this.watchdog.pid}/root${path}` : path
  }

  /** Runs a program as the server's account, where the server's disk is. */
  spawn(program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
    // In a session of its own, so that Ctrl-C leaves it to the tests' own end.
    const common: SpawnOptions = { ...options, cwd: this.folder, detached: true }
    if (!this.#hasDisk) return spawn(program, args, { ...common, ...(isRoot() ? this.#account : {}) })
    const { uid, gid } = this.#account
    const enter = ["--target", `${this.watchdog.pid}`, "--mount", "--root", "--wd"]
    // In the user namespace it would be root, as which PostgreSQL refuses to run: a second namespace gives its own id back.
    const as = isRoot()
      ? [`--setuid=${uid}`, `--setgid=${gid}`]
      : ["--user", "--preserve-credentials", "unshare", "--user", `--map-user=${uid}`, `--map-group=${gid}`]
    return spawn("nsenter", [...enter, ...as, program, ...args], common)
  }
}

/** In memory where there is plenty: a database is made in 20 ms there, in 50 to 300 ms on a disk that others use, too. */
function roomyFolder(): string {
  if (!existsSync(MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY)
  return Math.min(bavail * bsize, freemem()) > ENOUGH_BYTES ? MEMORY : tmpdir()
}

function isRoot(): boolean {
  return process.getuid!() === 0
}
