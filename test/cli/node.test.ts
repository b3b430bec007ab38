/** Which Node runs Posthorn, and however it was told what to run. */
import { execFile, execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { nodeProblem } from "../../src/version.ts"
import { temporaryFolder } from "../support/harness.ts"

const ROOT = fileURLToPath(new URL("../..", import.meta.url))
const COMMAND = join(ROOT, "bin/posthorn.mjs")
const LIBRARY = new URL("../../src/index.ts", import.meta.url).href
const FOLDERS = ["/usr/bin", "/usr/local/bin", "/bin"]

interface Result {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

function run(node: string, args: readonly string[], input = ""): Promise<Result> {
  return new Promise((resolve) => {
    const child = execFile(node, args, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    )
    child.stdin!.end(input)
  })
}

/** A Node of this machine that is too old, and its version. */
function oldNode(): { readonly path: string; readonly version: string } | null {
  for (const folder of FOLDERS) {
    try {
      const path = join(folder, "node")
      const version = execFileSync(path, ["-p", "process.versions.node"], { encoding: "utf8" }).trim()
      if (nodeProblem(version) !== null) return { path, version }
    } catch {
      // None there.
    }
  }
  return null
}

const old = oldNode()
const pretend = (version: string) =>
  `--import=data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"${version}"}})`
const sentence = (version: string) => `Posthorn needs Node 24.15 or newer, and this is Node ${version}: `
/** Nothing else: no stack, no warning. */
const said = (version: string) => ({
  code: 1,
  stdout: "",
  stderr: expect.stringMatching(new RegExp(`^posthorn: ${sentence(version)}run "npm run setup".*\\n$`)),
})

test("the oldest Node is the one that package.json names", () => {
  const { engines, bin } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"))
  const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(engines.node)!
  expect(nodeProblem(`${major}.${minor}.0`)).toBeNull()
  expect(nodeProblem(`${Number(major) + 1}.0.0`)).toBeNull()
  expect(nodeProblem(`${major}.${Number(minor) - 1}.9`)).toContain(`Node ${major}.${minor} or newer`)
  expect(nodeProblem(`${Number(major) - 1}.99.0`)).toContain(`Node ${major}.${minor} or newer`)
  expect(bin).toEqual({ posthorn: "bin/posthorn.mjs" })
})

test("the command runs on this Node", async () => {
  expect(await run(process.execPath, [COMMAND, "--version"])).toMatchObject({ code: 0, stderr: "" })
})

test("installed, the command is the built one, and on an old Node asks for a current one", async () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, "bin"))
  mkdirSync(join(folder, "dist/cli"), { recursive: true })
  for (const file of ["package.json", "bin/posthorn.mjs"]) copyFileSync(join(ROOT, file), join(folder, file))
  writeFileSync(join(folder, "dist/cli/main.js"), "console.log(process.argv.slice(2))")
  const command = join(folder, "bin/posthorn.mjs")
  expect(await run(process.execPath, [command, "serve"])).toEqual({
    code: 0,
    stdout: "[ 'serve' ]\n",
    stderr: "",
  })
  expect((await run(process.execPath, [pretend("20.20.2"), command, "serve"])).stderr).toBe(
    `posthorn: ${sentence("20.20.2")}install a current one\n`,
  )
})

test.each(["20.20.2", "22.18.0", "24.14.9"])("on Node %s the command says one sentence", async (version) => {
  expect(await run(process.execPath, [pretend(version), COMMAND, "serve"])).toEqual(said(version))
})

test.skipIf(old === null)("on an older Node of this machine the command says one sentence", async () => {
  expect(await run(old!.path, [COMMAND, "serve"])).toEqual(said(old!.version))
})

test("on a Node that is too old openPosthorn rejects with the same sentence", async () => {
  const program = `import { openPosthorn } from "${LIBRARY}"
    await openPosthorn({ store: "sqlite::memory:" }).catch(({ code, message }) => console.log(code, message))`
  const { stdout } = await run(process.execPath, [pretend("22.18.0"), "--input-type=module", "-e", program])
  expect(stdout).toBe(`store_incompatible ${sentence("22.18.0")}install a current one\n`)
})

const PROGRAM = (file: string) => `
  import { openPosthorn } from "${LIBRARY}"
  const posthorn = await openPosthorn({ store: "sqlite:${file}", logger: "silent" })
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  console.log((await posthorn.applications.list()).data.length)
  await posthorn.close()`

test.each([
  ["--eval with --input-type=module", (program: string) => [["--input-type=module", "--eval", program], ""]],
  ["-e with --input-type module", (program: string) => [["--input-type", "module", "-e", program], ""]],
  ["standard input", (program: string) => [["--input-type=module"], program]],
  ["--eval without a type", (program: string) => [["--eval", program], ""]],
] as const)("openPosthorn works in a program from %s", async (_from, started) => {
  const [args, input] = started(PROGRAM(join(temporaryFolder(), "posthorn.db")))
  expect(await run(process.execPath, args as readonly string[], input as string)).toEqual({
    code: 0,
    stdout: "1\n",
    stderr: "",
  })
})

test("a module that --import loads into the program is not loaded into the store's threads", async () => {
  const loaded = `--import=data:text/javascript,console.log("loaded")`
  const program = PROGRAM(join(temporaryFolder(), "posthorn.db"))
  const { stdout } = await run(process.execPath, [loaded, "--input-type=module", "--eval", program])
  expect(stdout).toBe("loaded\n1\n")
})
