/** Makes a run of the browser tests ready: Chromium is installed, and the dashboard is built from its sources. */
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { requireTool } from "../../support/tools.ts"

const BUILD = fileURLToPath(new URL("../../../scripts/build-dashboard.mjs", import.meta.url))

export default function prepareBrowserTests(): void {
  requireTool("chromium")
  execFileSync(process.execPath, [BUILD], { stdio: ["ignore", "inherit", "inherit"] })
}
