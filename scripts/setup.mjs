// Makes a fresh clone ready: locked dependencies, and a current Node where this machine's is too old.
// Plain JavaScript for any Node from 18 up, since it runs before anything is installed.
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const stampFile = join(root, "node_modules", ".posthorn-setup")
const lock = readFileSync(join(root, "package-lock.json"))
const wanted = /\d+\.\d+/.exec(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).engines.node)[0]
const [wantedMajor, wantedMinor] = wanted.split(".").map(Number)
const stamp = createHash("sha256").update(lock).digest("hex")

// npm puts node_modules/.bin first on the path of its scripts, so an earlier setup's Node may be the one running this.
const bundledNode = join(root, "node_modules", ".bin", process.platform === "win32" ? "node.cmd" : "node")
const [major, minor] = process.versions.node.split(".").map(Number)
const tooOld = major < wantedMajor || (major === wantedMajor && minor < wantedMinor)

function npm(...args) {
  // "npm ci" removes the bundled Node, which may be the one that runs this file.
  const cli = existsSync(process.execPath) ? process.env.npm_execpath : undefined
  const [command, prefix] = cli?.endsWith(".js") ? [process.execPath, [cli]] : ["npm", []]
  execFileSync(command, [...prefix, ...args, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    shell: command === "npm" && process.platform === "win32",
  })
}

const needsBundledNode = tooOld || existsSync(bundledNode)
const fresh = existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp
try {
  if (!fresh) {
    console.log("posthorn setup: installing dependencies")
    npm("ci")
  }
  if (needsBundledNode && !existsSync(bundledNode)) {
    console.log(`posthorn setup: fetching Node ${wantedMajor} beside the dependencies`)
    npm("install", "--no-save", `node-${process.platform}-${process.arch}@${wantedMajor}`)
  }
  if (!fresh) writeFileSync(stampFile, stamp)
} catch (error) {
  console.error(`posthorn setup failed: ${error.message}`)
  console.error(
    `Check that npm can reach its registry, or install Node ${wanted} or newer and run "npm ci" yourself.`,
  )
  process.exit(1)
}
