/** The built package. Running TypeScript directly takes 50 MB, and a second on a small machine. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const ROOT = new URL("../../", import.meta.url)
const COMPILER = fileURLToPath(new URL("node_modules/.bin/tsc", ROOT))

let building: Promise<unknown> | null = null

/** A file of the package, built as by `npm run build` without type checks. */
export async function builtFile(path: string): Promise<URL> {
  building ??= promisify(execFile)(COMPILER, ["-p", "tsconfig.build.json", "--noCheck"], { cwd: ROOT })
  await building
  return new URL(`dist/${path}`, ROOT)
}
