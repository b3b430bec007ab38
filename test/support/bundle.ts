/**
 * Bundles the store's thread and the programs that tests start by the hundred. A SQLite thread that loads forty TypeScript modules takes
 * 130 ms of CPU, from one file 42, of which 27 are Node's own start; a command takes half. Programs still start from their sources in
 * `docs.test.ts`, `node.test.ts`, `main.test.ts`, `demo.test.ts` and `start.timing.test.ts`.
 */
import { createHash } from "node:crypto"
import { existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type BuildOptions, build, type OutputChunk } from "rolldown"
import type { Plugin } from "vite"
import { BUNDLES_VARIABLE, PROGRAMS } from "./bundled.ts"

const ROOT = fileURLToPath(new URL("../../", import.meta.url))
const FOLDER = join(ROOT, "node_modules", ".posthorn-test")
/** Modules that run on a thread of their own. They are found beside the module that starts them, by their file's name. */
const THREADS = globSync("src/**/{thread,*-thread}.ts", { cwd: ROOT })
const STARTER = "/src/store/sqlite/channel.ts"
const URL_OF_THREAD = "new URL(file, import.meta.url)"

/** Loaded from node_modules: rolldown declares a name twice when it bundles the two with one another. */
const EXTERNAL = ["@prometheus-io/client", /^@opentelemetry\//]

/** Resolves with the folder of the bundles, which has their content's hash in its name: runs of different sources do not meet. */
export async function bundlePrograms(): Promise<string> {
  const options: BuildOptions = {
    cwd: ROOT,
    platform: "node",
    logLevel: "silent",
    write: false,
    external: EXTERNAL,
  }
  const threads = THREADS.map((input) =>
    build({ ...options, input, output: { entryFileNames: "[name].js", codeSplitting: false } }),
  )
  const programs = build({ ...options, input: PROGRAMS, output: { entryFileNames: "[name].js" } })
  const outputs = (await Promise.all([...threads, programs])).flatMap(({ output }) => output)
  const files = outputs.filter((one): one is OutputChunk => one.type === "chunk")
  const hash = createHash("sha256")
    .update(JSON.stringify(files.map(({ code }) => code)))
    .digest("hex")
  const folder = join(FOLDER, hash.slice(0, 16))
  if (existsSync(folder)) return folder
  mkdirSync(FOLDER, { recursive: true })
  const unfinished = mkdtempSync(`${folder}-`)
  writeFileSync(join(unfinished, "package.json"), '{"type":"module"}')
  for (const { fileName, code } of files) writeFileSync(join(unfinished, fileName), code)
  try {
    renameSync(unfinished, folder)
  } catch {
    // Another run was quicker.
    rmSync(unfinished, { recursive: true })
  }
  return folder
}

/** Lets the SQLite stores of the tests' own process start the bundled thread. */
export function bundledStoreThread(): Plugin {
  return {
    name: "posthorn:store-thread",
    transform(code, id) {
      if (!id.endsWith(STARTER)) return null
      if (!code.includes(URL_OF_THREAD)) throw new Error(`${STARTER} no longer has ${URL_OF_THREAD}`)
      const thread = pathToFileURL(join(process.env[BUNDLES_VARIABLE]!, "thread.js")).href
      return { code: code.replace(URL_OF_THREAD, `new URL(${JSON.stringify(thread)})`), map: null }
    },
  }
}
