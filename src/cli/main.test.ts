/** The command as it is typed, in a process of its own. */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"

const MAIN = new URL("./main.ts", import.meta.url).pathname

interface Result {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

function posthorn(...args: string[]): Promise<Result> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, ...args], (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    )
  })
}

test("--version prints the version of the package", async () => {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
  expect(await posthorn("--version")).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" })
})

test("--help lists the commands", async () => {
  const { code, stdout } = await posthorn("--help")
  expect(code).toBe(0)
  expect(stdout).toMatch(/^ {2}demo +\w/m)
})

test("no command at all is an error that shows the help", async () => {
  const { code, stdout, stderr } = await posthorn()
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
  expect(stderr).toContain("posthorn <command>")
})

test("demo --help says what it does, and does nothing", async () => {
  const { code, stdout } = await posthorn("demo", "--help")
  expect(code).toBe(0)
  expect(stdout).toContain("--keep")
  expect(stdout).not.toContain("posthorn.db")
})

test.each([
  [["dmeo"], "posthorn: unknown command dmeo; did you mean demo?\n"],
  [["frobnicate"], "posthorn: unknown command frobnicate; known are demo, worker, migrate\n"],
  [["constructor"], "posthorn: unknown command constructor; known are demo, worker, migrate\n"],
  [["--verson"], "posthorn: unknown flag --verson; did you mean --version?\n"],
  [["demo", "--kep"], "posthorn: unknown flag --kep; did you mean --keep?\n"],
  [["demo", "--keep=yes"], "posthorn: Option '--keep' does not take an argument\n"],
  [["demo", "now"], 'posthorn: there is no place for "now" here; the flags are --keep, --help\n'],
  [["\x1b[2J"], "posthorn: unknown command \\x1b[2J; known are demo, worker, migrate\n"],
])("%j is refused with one sentence", async (args, sentence) => {
  expect(await posthorn(...args)).toEqual({ code: 2, stdout: "", stderr: sentence })
})
