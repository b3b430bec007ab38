/** The account that PostgreSQL runs as. */
import { execFileSync } from "node:child_process"

export interface Account {
  readonly uid: number
  readonly gid: number
}

/** PostgreSQL refuses to run as root. */
export function accountForPostgres(): Account {
  if (process.getuid!() !== 0) return { uid: process.getuid!(), gid: process.getgid!() }
  const id = (what: "-u" | "-g", name: string) =>
    Number(execFileSync("id", [what, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }))
  for (const name of ["postgres", "nobody"]) {
    try {
      return { uid: id("-u", name), gid: id("-g", name) }
    } catch {
      // No such account: the next one.
    }
  }
  throw new Error(
    "PostgreSQL refuses to run as root, and there is no account postgres or nobody: run the tests as another user",
  )
}
