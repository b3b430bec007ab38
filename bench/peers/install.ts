/** The peers' packages, from a `package.json` of their own: installed at first use. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { NotMeasured } from "../harness/void.ts"

/** npm appends its usage text to an error. */
const MOST_LINES = 5
const FOLDER = fileURLToPath(new URL("..", import.meta.url))

const { dependencies } = JSON.parse(readFileSync(join(FOLDER, "package.json"), "utf8"))
const loaded: { [name: string]: string } = {}

/** The caller gives the type: the packages' types do not exist before the installation. */
export function loadPeer<T>(name: string): T {
  try {
    if (installedVersion(name) !== dependencies[name]) install()
    loaded[name] = dependencies[name]
    return createRequire(import.meta.url)(name) as T
  } catch (cause) {
    const reason = (cause as Error).message.split("\n").slice(0, MOST_LINES).join(" ")
    throw new NotMeasured(`${name} could not be installed from bench/package.json: ${reason}`, { cause })
  }
}

/** Of the packages that were loaded. */
export function peerVersions(): { readonly [name: string]: string } {
  return loaded
}

function installedVersion(name: string): string | null {
  try {
    return JSON.parse(readFileSync(join(FOLDER, "node_modules", name, "package.json"), "utf8")).version
  } catch {
    return null
  }
}

function install(): void {
  console.error("installing the peers from bench/package-lock.json")
  // The npm that started this process, if any: the one on the path may belong to another Node.
  const cli = process.env.npm_execpath
  const [command, ...prefix] = cli?.endsWith(".js") ? [process.execPath, cli] : ["npm"]
  execFileSync(command!, [...prefix, "ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: FOLDER,
    stdio: ["ignore", "ignore", "pipe"],
  })
}
