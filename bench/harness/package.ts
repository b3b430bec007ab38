/** The package as it is installed: Node's own reading of TypeScript takes 50 MB, and a second of a small machine. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const ROOT = new URL("../../", import.meta.url)
const COMPILER = fileURLToPath(new URL("node_modules/.bin/tsc", ROOT))

let building: Promise<unknown> | null = null

/** A file of it, made as `npm run build` makes it, without the checks that take most of the time. */
export async function builtFile(path: string): Promise<URL> {
  building ??= promisify(execFile)(COMPILER, ["-p", "tsconfig.build.json", "--noCheck"], { cwd: ROOT })
  await building
  return new URL(`dist/${path}`, ROOT)
}
