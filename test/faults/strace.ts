/** Faults put into the kernel's answers from outside: the program under test is the real one, and so is its file. */
import { requireTool } from "../support/tools.ts"

export interface SyncFault {
  /** `signal=KILL` kills at the sync, before it happens; `error=EIO` makes it fail. */
  readonly fault: "signal=KILL" | "error=EIO"
  /** At the n-th sync of a thread. */
  readonly at: number
  /** Only syncs of this file count. */
  readonly file?: string
  /** Where the syncs are written down, for a test that must know that the fault happened. */
  readonly log?: string
}

/**
 * The command that runs a program with the fault in it. Both calls are named, since it depends on how SQLite was built which of
 * them it makes. `-D` keeps the program our own child, with its own exit code; `--seccomp-bpf` is faster, but with it no signal is sent.
 */
export function withSyncFault({ fault, at, file, log }: SyncFault): string[] {
  const only = file === undefined ? [] : ["-P", file]
  const inject = `inject=fdatasync,fsync:${fault}:when=${at}`
  const trace = ["-e", "trace=fdatasync,fsync", "-e", inject]
  const fast = fault === "signal=KILL" ? [] : ["--seccomp-bpf"]
  return [requireTool("strace"), "-D", "-f", ...fast, "-o", log ?? "/dev/null", ...only, ...trace]
}

/** The command that runs a program and kills it at its first write into this file, which then exists and is empty. */
export function killedAtWriteTo(file: string): string[] {
  const calls = ["-e", "trace=write,pwrite64", "-e", "inject=write,pwrite64:signal=KILL:when=1"]
  return [requireTool("strace"), "-D", "-f", "-o", "/dev/null", "-P", file, ...calls]
}

/** The command that runs a program and writes down, with their content, its writes and syncs. */
export function withTrace(log: string): string[] {
  const calls = "trace=write,pwrite64,fdatasync,fsync"
  return [requireTool("strace"), "-D", "-f", "--seccomp-bpf", "-y", "-s", "4096", "-o", log, "-e", calls]
}
