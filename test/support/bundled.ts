/** The programs that tests start again and again, as bundles: see `bundle.ts`. */
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const ROOT = new URL("../../", import.meta.url)

/** By the name of their bundle. */
export const PROGRAMS = {
  posthorn: "src/cli/main.ts",
  "kill-child": "test/kill/child.ts",
  "worker-child": "test/support/worker-child.ts",
} as const

/** Where the bundles of this run are. */
export const BUNDLES_VARIABLE = "POSTHORN_TEST_BUNDLES"

/** A program's bundle in a run of the tests, and its source anywhere else. */
export function programFile(name: keyof typeof PROGRAMS): URL {
  const folder = process.env[BUNDLES_VARIABLE]
  return folder === undefined ? new URL(PROGRAMS[name], ROOT) : pathToFileURL(join(folder, `${name}.js`))
}
