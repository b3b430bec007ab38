/** A host that ends without closing its Posthorn: `exit`, `throw`, or with `close` after it. Its store is the second argument. */
import { openPosthorn } from "../../src/index.ts"

const [how, store = ""] = process.argv.slice(2)
const posthorn = await openPosthorn({ store, logger: "silent" })
await posthorn.applications.create({ uid: "acme", name: "Acme" })
await posthorn.endpoints.list("acme")
if (how === "exit") process.exit(0)
if (how === "throw") throw new Error("the host failed")
await posthorn.close()
