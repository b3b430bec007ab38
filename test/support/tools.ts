/** The system tools that some tests need: found, installed where that may be done, or asked for. Nothing is skipped in silence. */
import { execFileSync } from "node:child_process"
import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"

const FOLDERS = [...(process.env.PATH ?? "").split(delimiter), "/usr/bin", "/bin", "/usr/sbin", "/sbin"]

/** The tool's path. `inPackage` is the Debian package that brings it. */
export function requireTool(name: string, inPackage = name): string {
  let cause: unknown
  try {
    const found = findTool(name) ?? (installPackage(inPackage) ? findTool(name) : null)
    if (found !== null) return found
  } catch (error) {
    cause = error
  }
  const text = `this test needs ${name}, which is not on this machine and could not be installed`
  throw new Error(`${text}: on Debian or Ubuntu run "apt-get install ${inPackage}" as root`, { cause })
}

export function findTool(name: string): string | null {
  for (const folder of FOLDERS) {
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

/**
 * Debian starts a service when its package is installed, unless a policy forbids it. The shell takes the policy back even when
 * the process that runs the tests is killed meanwhile.
 */
const INSTALL = `
  set -e
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\\nexit 101\\n' >$policy
    chmod 755 $policy
  fi
  apt-get -qq update
  apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$1"
`

/** Whether the package could be installed at all; throws when apt-get fails. No service of it is started. */
export function installPackage(inPackage: string): boolean {
  if (process.getuid?.() !== 0 || findTool("apt-get") === null) return false
  console.error(`The tests need ${inPackage}: installing it with apt-get.`)
  execFileSync("sh", ["-c", INSTALL, "sh", inPackage], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  })
  return true
}
