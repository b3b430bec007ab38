/** Ends a server and removes its folder when the process that started it closes it, or is gone in whatever way. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { rmSync } from "node:fs"
import type { Socket } from "node:net"

/**
 * Reads the server's process id from each line (0: it has ended) until the pipe closes, which the kernel does for a killed
 * process too. PostgreSQL leaves shared memory behind when it is killed, so that comes last; and it waits for a minute after an
 * interrupt if a client that has just connected says nothing, so there is a step between.
 */
const SCRIPT = `
  folder=$1 diskOptions=$2 server=0
  runs() { kill -0 "$server" && ! grep -q '^State:.Z' "/proc/$server/status"; }
  if [ -n "$diskOptions" ]; then mount -t tmpfs -o "$diskOptions" none "$folder/disk" || exit 1; fi
  echo watching
  exec 2>/dev/null
  while read -r line; do server=$line; done
  for signal in INT QUIT KILL; do
    tries=0
    while [ "$server" -gt 0 ] && runs && [ $tries -lt 100 ]; do
      if [ $tries = 0 ]; then kill -$signal "$server" && kill -CONT "$server"; fi
      sleep 0.02
      tries=$((tries + 1))
    done
  done
  if [ -n "$diskOptions" ]; then umount -l "$folder/disk"; fi
  rm -rf "$folder"
`

export class Watchdog {
  readonly #process: ChildProcess
  readonly #ended: Promise<unknown>

  private constructor(process: ChildProcess) {
    this.#process = process
    this.#ended = once(process, "close")
    process.stdin!.on("error", () => {})
    // A run that fails before it could close its servers ends all the same, and they with it.
    process.unref()
    ;(process.stdin as Socket).unref()
  }

  /** With options for a disk, a tmpfs is mounted in the folder, which the watchdog's own mount namespace (`under`) keeps. */
  static async start(folder: string, under: readonly string[] = [], diskOptions = ""): Promise<Watchdog> {
    const [command, ...args] = [...under, "sh", "-c", SCRIPT, "sh", folder, diskOptions]
    // In a session of its own, where no Ctrl-C reaches it.
    const watchdog = new Watchdog(spawn(command!, args, { cwd: "/", detached: true }))
    let problem = ""
    watchdog.#process.stderr!.on("data", (text) => (problem += text))
    await Promise.race([once(watchdog.#process.stdout!, "data"), watchdog.#ended])
    if (watchdog.#process.exitCode !== null) {
      rmSync(folder, { recursive: true })
      throw new Error(`cannot make a disk for a server: ${problem}`)
    }
    watchdog.#process.stdout!.destroy()
    watchdog.#process.stderr!.destroy()
    return watchdog
  }

  get pid(): number {
    return this.#process.pid!
  }

  watch(server: number): void {
    this.#process.stdin!.write(`${server}\n`)
  }

  async close(): Promise<void> {
    this.#process.ref()
    this.#process.stdin!.end()
    await this.#ended
  }
}
