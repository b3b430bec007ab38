/** The programs of the real servers: found, installed where that may be done, or asked for. Nothing is skipped in silence. */
import { execFileSync } from "node:child_process"
import { accessSync, constants, globSync, realpathSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { installPackage } from "../tools.ts"

export interface PostgresPrograms {
  readonly initdb: string
  readonly postgres: string
  readonly majorVersion: number
  /** Whether statements can be counted. It is in a package of its own on some systems. */
  readonly hasStatementStatistics: boolean
}

export function requirePostgres(): PostgresPrograms {
  // A link on the path does not say where its sister programs are.
  const initdb = realpathSync(
    requireProgram("initdb", "postgresql", "POSTHORN_TEST_POSTGRES_URL", debianFolders),
  )
  const folder = dirname(initdb)
  return {
    initdb,
    postgres: join(folder, "postgres"),
    majorVersion: Number(/\d+/.exec(execFileSync(initdb, ["--version"], { encoding: "utf8" }))),
    hasStatementStatistics: globSync(join(folder, "../lib/pg_stat_statements.*")).length > 0,
  }
}

export function requireRedis(): string {
  return requireProgram("redis-server", "redis-server", "POSTHORN_TEST_REDIS_URL")
}

function requireProgram(
  name: string,
  inPackage: string,
  variable: string,
  more = (): string[] => [],
): string {
  let cause: unknown
  try {
    const found = find(name, more()) ?? (install(inPackage) ? find(name, more()) : null)
    if (found !== null) return found
  } catch (error) {
    cause = error
  }
  const text = `the tests need ${name}, which is not on this machine and could not be installed`
  const mend = `run "apt-get install ${inPackage}" as root (or install it in your system's way)`
  throw new Error(`${text}: ${mend}, or set ${variable} to the URL of a running server`, { cause })
}

/** Debian keeps PostgreSQL's programs off the path, a folder for each version. */
function debianFolders(): string[] {
  const version = (folder: string) => Number(folder.split("/").at(-2))
  return globSync("/usr/lib/postgresql/*/bin").sort((one, other) => version(other) - version(one))
}

function find(name: string, more: readonly string[] = []): string | null {
  for (const folder of [...(process.env.PATH ?? "").split(delimiter), ...more]) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not here: the next folder.
    }
  }
  return null
}

function install(inPackage: string): boolean {
  return find("apt-get") !== null && installPackage(inPackage)
}
