/** Runs a program of another language to its end, within a time. */
import { spawn } from "node:child_process"

export interface Command {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env?: { readonly [name: string]: string }
}

const MOST_TEXT = 4000

/** Rejects with what the program wrote, unless it exits with 0. */
export function run({ program, args, cwd, env = {} }: Command, withinMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    // In a group of its own: `go run` starts the program that it has built.
    const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, detached: true })
    let written = ""
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => {
        written = (written + chunk).slice(-MOST_TEXT)
      })
    const deadline = setTimeout(() => {
      written += `\n(not over after ${withinMs} ms)`
      process.kill(-child.pid!, "SIGKILL")
    }, withinMs)
    child.on("error", reject)
    child.on("close", (code, signal) => {
      clearTimeout(deadline)
      if (code === 0) resolve()
      else reject(new Error(`${program} ended with ${code ?? signal}: ${written.trim()}`))
    })
  })
}
