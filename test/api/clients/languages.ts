/** How a client program of each language gets its packages, which are kept for the next run, and how it is started. */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { findTool } from "../../support/tools.ts"
import { type Command, run } from "./run.ts"

export interface Language {
  readonly name: string
  /** Left to `npm run soak`: its compiler takes longer than everything that the client does. */
  readonly isLong: boolean
  /** The programs that must be on the machine. */
  readonly tools: readonly string[]
  /** The file that names the client and its version. */
  readonly manifest: string
  install(packages: string): Command
  start(packages: string): Command
}

const HERE = import.meta.dirname
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "posthorn-clients")
const INSTALL_MS = 300_000

export const LANGUAGES: readonly Language[] = [
  {
    name: "Python",
    isLong: false,
    tools: ["python3"],
    manifest: join(HERE, "python", "requirements.txt"),
    install: (packages) => ({
      program: "python3",
      args: ["-m", "pip", "install", "--quiet", "--target", packages, "-r", "requirements.txt"],
      cwd: join(HERE, "python"),
    }),
    start: (packages) => ({
      program: "python3",
      args: ["client.py"],
      cwd: join(HERE, "python"),
      env: { PYTHONPATH: packages, PYTHONDONTWRITEBYTECODE: "1" },
    }),
  },
  {
    name: "Go",
    isLong: true,
    tools: ["go"],
    manifest: join(HERE, "go", "go.mod"),
    // Go keeps modules itself; the folder of packages only says that they are there.
    install: () => ({ program: "go", args: ["mod", "download"], cwd: join(HERE, "go") }),
    start: () => ({
      program: "go",
      args: ["run", "."],
      cwd: join(HERE, "go"),
      env: { GOFLAGS: "-buildvcs=false" },
    }),
  },
  {
    name: "Java",
    isLong: true,
    tools: ["java", "mvn"],
    manifest: join(HERE, "java", "pom.xml"),
    install: (packages) => ({
      program: "mvn",
      args: ["-q", "-B", "dependency:copy-dependencies", `-DoutputDirectory=${packages}`],
      cwd: join(HERE, "java"),
    }),
    start: (packages) => ({
      program: "java",
      args: ["-cp", join(packages, "*"), "Client.java"],
      cwd: join(HERE, "java"),
    }),
  },
]

/** Where its packages are, or why the language cannot be tried here. */
export async function prepare(
  language: Language,
): Promise<{ readonly packages: string } | { readonly missing: string }> {
  const missing = language.tools.filter((tool) => findTool(tool) === null)
  if (missing.length > 0) return { missing: `${missing.join(" and ")} is not on this machine` }
  const key = createHash("sha256").update(readFileSync(language.manifest)).digest("hex").slice(0, 16)
  const packages = join(CACHE, `${language.name.toLowerCase()}-${key}`)
  if (existsSync(packages)) return { packages }
  mkdirSync(dirname(packages), { recursive: true })
  const fresh = mkdtempSync(`${packages}-`)
  try {
    await run(language.install(fresh), INSTALL_MS)
    renameSync(fresh, packages)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    // Another run may have installed the same meanwhile.
    if (!existsSync(packages))
      return { missing: `its client could not be installed: ${(error as Error).message}` }
  }
  return { packages }
}
