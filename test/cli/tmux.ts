/** A terminal of tmux in which a command runs: what is on its screen, and the keys that are pressed. */
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { onTestFinished } from "vitest"
import { temporaryFolder } from "../support/harness.ts"
import { requireTool } from "../support/tools.ts"
import { Watchers } from "../support/watchers.ts"

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** Printed when the command has ended, with its exit code. */
const ENDED = "ended with"
const PATIENCE_MS = 40_000

/** A client in control mode: tmux tells it of every output, so nothing has to be polled. */
export class TmuxScreen {
  readonly #tmux: ChildProcessWithoutNullStreams
  readonly #watchers = new Watchers()
  readonly #answers: ((lines: string[]) => void)[] = []
  #answer: string[] | null = null
  #screen = ""
  #isReading = false
  #isStale = false
  #isClosed = false
  readonly #kill: () => void

  constructor(command: readonly string[], cwd: string, env: NodeJS.ProcessEnv, { columns, rows }: Size) {
    const program = requireTool("tmux")
    const own = { ...env, TMUX_TMPDIR: temporaryFolder(), TERM: "xterm-256color" }
    const line = `${command.map(quoted).join(" ")}; echo ${ENDED} $?; exec cat`
    const size = ["-x", `${columns}`, "-y", `${rows}`]
    this.#tmux = spawn(program, ["-u", "-f", "/dev/null", "-C", "new-session", ...size, line], {
      cwd,
      env: own,
    })
    this.#kill = () => execFileSync(program, ["kill-server"], { env: own, stdio: "ignore" })
    onTestFinished(() => this.close())
    // The last requests may come after its end.
    this.#tmux.stdin.on("error", () => {})
    createInterface({ input: this.#tmux.stdout }).on("line", (text) => this.#read(text))
    // The answer to the command line.
    this.#answers.push(() => {})
    this.resize({ columns, rows })
  }

  /** Resolves with the screen once it has such a text. */
  async shows(wanted: RegExp): Promise<string> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const never = () => reject(new Error(`there is no ${wanted} on the screen:\n${this.#screen}`))
    const timer = setTimeout(never, PATIENCE_MS)
    await Promise.race([this.#watchers.until(() => wanted.test(this.#screen)), late])
    clearTimeout(timer)
    return this.#screen
  }

  /** Resolves with the exit code. */
  async ended(): Promise<number> {
    const screen = await this.shows(new RegExp(`^${ENDED} \\d+$`, "m"))
    return Number(new RegExp(`^${ENDED} (\\d+)$`, "m").exec(screen)![1])
  }

  /** In tmux's words: `j`, `Up`, `C-c`. */
  press(...keys: readonly string[]): void {
    void this.#ask(`send-keys ${keys.join(" ")}`)
  }

  resize({ columns, rows }: Size): void {
    void this.#ask(`refresh-client -C ${columns}x${rows}`)
  }

  /** As somebody closes the window: the command gets SIGHUP. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#kill()
  }

  get screen(): string {
    return this.#screen
  }

  #ask(command: string): Promise<string[]> {
    this.#tmux.stdin.write(`${command}\n`)
    return new Promise((resolve) => this.#answers.push(resolve))
  }

  #read(text: string): void {
    if (/^%(end|error) /.test(text)) {
      this.#answers.shift()?.(this.#answer ?? [])
      this.#answer = null
    } else if (this.#answer !== null) this.#answer.push(text)
    else if (text.startsWith("%begin ")) this.#answer = []
    else void this.#look()
  }

  async #look(): Promise<void> {
    this.#isStale = true
    if (this.#isReading) return
    this.#isReading = true
    while (this.#isStale) {
      this.#isStale = false
      this.#screen = (await this.#ask("capture-pane -p")).join("\n")
      this.#watchers.changed()
    }
    this.#isReading = false
  }
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
