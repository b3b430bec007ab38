// Builds the dashboard into dist/dashboard, unless the files there are newer than its sources.
import { existsSync, readdirSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const built = join(root, "dist", "dashboard", "index.html")

function newest(path) {
  const stats = statSync(path)
  if (!stats.isDirectory()) return stats.mtimeMs
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))))
}

const parts = ["dashboard", "package-lock.json", "scripts/build-dashboard.mjs"]
const shared = ["src/api/page-paths.ts", "src/core/verification-schemes.ts"]
const sources = [...parts, ...shared].map((name) => join(root, name))
const isCurrent = existsSync(built) && statSync(built).mtimeMs > Math.max(...sources.map(newest))
if (!isCurrent) {
  // Test runners set it to "test", and Vite would keep code for development.
  process.env.NODE_ENV = "production"
  const { build } = await import("vite")
  await build({ configFile: join(root, "dashboard", "vite.config.ts"), logLevel: "warn" })
}
