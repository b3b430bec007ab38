/** The hostile receivers in a process of their own: pouring is then no burden of the process that is measured. */
import { Hostile } from "../support/hostile.ts"

const hostile = await Hostile.start()
process.on("disconnect", () => process.exit(0))
console.log(`at ${hostile.url("")}`)
