/** The machine and the commit of the figures. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { cpus, totalmem } from "node:os"
import { fileURLToPath } from "node:url"
import { peerVersions } from "../peers/install.ts"
import type { Servers } from "./servers.ts"

export interface Machine {
  readonly machine: string
  /** With a plus sign if files have changed since. */
  readonly commit: string | null
  /** Null: no part used the server. */
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
  /** Steal time: the host gave the processor to others while this machine had work. */
  readonly stolen: number
}

/** Since the start of the system; null: unknown. */
export function processorTime(): ProcessorTime | null {
  try {
    const [, ...fields] = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]!.trim().split(/\s+/)
    // The eighth value is steal time. Those behind it are included in the first.
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
