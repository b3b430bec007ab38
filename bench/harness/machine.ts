/** What the figures were taken on, and of which code. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { cpus, totalmem } from "node:os"
import { fileURLToPath } from "node:url"
import { peerVersions } from "../peers/install.ts"
import type { Servers } from "./servers.ts"

export interface Machine {
  readonly machine: string
  /** With a plus sign when files were changed since. */
  readonly commit: string | null
  /** Null for a server that no part needed. */
  readonly versions: { readonly [program: string]: string | null }
}

export function describeMachine(servers: Servers): Machine {
  const [first] = cpus()
  const memoryGb = Math.round(totalmem() / 1024 ** 3)
  return {
    machine: `${cpus().length} × ${first?.model.trim() || process.arch}, ${memoryGb} GB, ${process.platform}`,
    commit: commit(),
    versions: {
      node: process.versions.node,
      sqlite: process.versions.sqlite ?? null,
      ...servers.versions,
      ...peerVersions(),
    },
  }
}

interface ProcessorTime {
  readonly all: number
  /** What a virtual machine was not given while it had something to do. */
  readonly stolen: number
}

/** Since the system was started; null where it does not tell. */
export function processorTime(): ProcessorTime | null {
  try {
    const [, ...fields] = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]!.trim().split(/\s+/)
    // The eighth is what was stolen; those behind it are counted in the first.
    const times = fields.slice(0, 8).map(Number)
    return { all: times.reduce((sum, time) => sum + time, 0), stolen: times[7] ?? 0 }
  } catch {
    return null
  }
}

export function stolenShare(from: ProcessorTime | null, to: ProcessorTime | null): number | null {
  return from === null || to === null || to.all === from.all
    ? null
    : (to.stolen - from.stolen) / (to.all - from.all)
}

function commit(): string | null {
  const cwd = fileURLToPath(new URL("..", import.meta.url))
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()
  try {
    return git("rev-parse", "HEAD") + (git("status", "--porcelain", "--untracked-files=no") === "" ? "" : "+")
  } catch {
    return null
  }
}
