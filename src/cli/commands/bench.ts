/** `posthorn bench`: the project's benchmark, in a clone of the repository. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { action, type Command } from "../command.ts"
import { on, text } from "../flag.ts"

const ROOT = new URL("../../../", import.meta.url)

export const command: Command = action({
  summary: "measure deliveries per second against a bare loop; part of the source repository",
  flags: {
    quick: on("a shorter run"),
    only: text("PART", "one of its parts"),
    json: on("for programs"),
  },
  examples: ["posthorn bench --quick"],
  alone: true,
  async run({ flags }) {
    if (!existsSync(new URL("bench/main.ts", ROOT)))
      throw new Error("the benchmark is part of the source repository: clone it and run npm run bench there")
    const { quick, only, json } = flags
    const args = [
      ...(quick ? ["--quick"] : []),
      ...(only === undefined ? [] : ["--only", only]),
      ...(json ? ["--json"] : []),
    ]
    // The script sets the options of Node that the benchmark needs.
    const child = spawn("npm", ["run", "--silent", "bench", "--", ...args], { cwd: ROOT, stdio: "inherit" })
    const [code] = (await once(child, "exit")) as [number | null]
    return code ?? 1
  },
})
