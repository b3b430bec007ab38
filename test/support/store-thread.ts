/**
 * Lets tests start the SQLite store's threads from one bundled file. A thread that loads forty TypeScript modules takes 120 ms of CPU;
 * from the bundle it takes 40, two thirds of which are Node's own start. Programs that tests start load the modules as they are.
 */
import { fileURLToPath } from "node:url"
import { build } from "rolldown"
import type { Plugin } from "vite"

const STARTER = "/src/store/sqlite/channel.ts"
const THREAD = fileURLToPath(new URL("../../src/store/sqlite/thread.ts", import.meta.url))
const FOLDER = fileURLToPath(new URL("../../node_modules/.posthorn-test/", import.meta.url))
const URL_OF_THREAD = "new URL(file, import.meta.url)"

/** Built once for all projects of a run. */
let bundling: Promise<string> | undefined

async function bundle(): Promise<string> {
  const { output } = await build({
    input: THREAD,
    platform: "node",
    logLevel: "silent",
    // The hash lets two runs of different sources share the folder.
    output: { dir: FOLDER, entryFileNames: "thread-[hash].mjs", codeSplitting: false },
  })
  return new URL(output[0].fileName, `file://${FOLDER}`).href
}

export function bundledStoreThread(): Plugin {
  return {
    name: "posthorn:store-thread",
    async transform(code, id) {
      if (!id.endsWith(STARTER)) return null
      if (!code.includes(URL_OF_THREAD)) throw new Error(`${STARTER} no longer has ${URL_OF_THREAD}`)
      bundling ??= bundle()
      return { code: code.replace(URL_OF_THREAD, `new URL(${JSON.stringify(await bundling)})`), map: null }
    },
  }
}
