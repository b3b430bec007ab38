/** What the figures were taken on, and of which code. */
import { execFileSync } from "node:child_process"
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
