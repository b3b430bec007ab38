/** A logger that keeps its lines, and a way to wait for one. */
import pino, { type Logger } from "pino"

export interface LogLine {
  readonly level: number
  readonly msg: string
  readonly [field: string]: unknown
}

export class LogLines {
  readonly all: LogLine[] = []
  readonly #watchers = new Set<() => void>()
  readonly logger: Logger = pino(
    { level: "info" },
    {
      write: (line: string) => {
        this.all.push(JSON.parse(line))
        for (const watcher of this.#watchers) watcher()
      },
    },
  )

  about(text: string): LogLine[] {
    return this.all.filter(({ msg }) => msg.includes(text))
  }

  /** Resolves with the first line that has this text. */
  async told(text: string): Promise<LogLine> {
    while (this.about(text).length === 0)
      await new Promise<void>((resolve) => {
        const watcher = () => {
          this.#watchers.delete(watcher)
          resolve()
        }
        this.#watchers.add(watcher)
      })
    return this.about(text)[0]!
  }
}
