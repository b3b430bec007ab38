/** The system tools that some tests need: found, installed where that may be done, or asked for. Nothing is skipped in silence. */
import { execFileSync } from "node:child_process"
import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"

const FOLDERS = [...(process.env.PATH ?? "").split(delimiter), "/usr/bin", "/bin", "/usr/sbin", "/sbin"]

/** The tool's path. `inPackage` is the Debian package that brings it. */
export function requireTool(name: string, inPackage = name): string {
  let cause: unknown
  try {
    const found = findTool(name) ?? install(name, inPackage)
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

function install(name: string, inPackage: string): string | null {
  const apt = findTool("apt-get")
  if (apt === null || process.getuid?.() !== 0) return null
  for (const command of [["update"], ["install", "-y", inPackage]])
    execFileSync(apt, ["-qq", "-o", "DPkg::Lock::Timeout=120", ...command], { stdio: "pipe" })
  return findTool(name)
}
