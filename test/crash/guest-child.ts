/** A Posthorn that does not deliver, beside the one that does. SIGTERM closes it. Its store is the first argument. */
import { openPosthorn } from "../../src/index.ts"

const posthorn = await openPosthorn({ store: process.argv[2]!, deliver: false, logger: "silent" })
await posthorn.stats()
const alive = setInterval(() => {}, 60_000)
process.once("SIGTERM", async () => {
  await posthorn.close()
  clearInterval(alive)
})
console.log("open")
