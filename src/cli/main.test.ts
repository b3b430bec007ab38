/** The command as it is typed, in a process of its own. */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { inheritedEnvironment } from "../../test/support/process.ts"
import { isGroup } from "./command.ts"
import { COMMANDS } from "./registry.ts"

const KNOWN = Object.keys(COMMANDS).join(", ")
const MAIN = new URL("./main.ts", import.meta.url).pathname

interface Result {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

function posthorn(...args: string[]): Promise<Result> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [MAIN, ...args],
      { env: inheritedEnvironment() },
      (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
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
  [["frobnicate"], `posthorn: unknown command frobnicate; known are ${KNOWN}\n`],
  [["constructor"], `posthorn: unknown command constructor; known are ${KNOWN}\n`],
  [["send-now"], "posthorn: unknown command send-now; did you mean deliveries send-now?\n"],
  [["resend", "acme"], "posthorn: unknown command resend; did you mean messages resend?\n"],
  [
    ["deliveries", "get", "dlv_…CNPmgU"],
    "posthorn: dlv_…CNPmgU is a shortened id; the list shows it whole with --wide\n",
  ],
  [["--verson"], "posthorn: unknown flag --verson; did you mean --version?\n"],
  [["demo", "--kep"], "posthorn: unknown flag --kep; did you mean --keep?\n"],
  [["demo", "--keep=yes"], "posthorn: Option '--keep' does not take an argument\n"],
  [["demo", "now"], 'posthorn: there is no place for "now" here; the flags are --keep, --help\n'],
  [["\x1b[2J"], `posthorn: unknown command \\x1b[2J; known are ${KNOWN}\n`],
  [["endponts", "list"], "posthorn: unknown command endponts; did you mean endpoints?\n"],
  [["apps", "lsit"], "posthorn: unknown command apps lsit; did you mean list?\n"],
  [["apps", "list", "--limt", "3"], "posthorn: unknown flag --limt; did you mean --limit?\n"],
  [["apps", "get"], "posthorn: <app> is missing; it is posthorn apps get <app> [flags]\n"],
  [["help", "aps"], "posthorn: unknown command aps; did you mean apps?\n"],
])("%j is refused with one sentence", async (args, sentence) => {
  expect(await posthorn(...args)).toEqual({ code: 2, stdout: "", stderr: sentence })
})

test.each([
  [["help"], "posthorn <command> --help"],
  [["help", "dead"], "posthorn dead <command>"],
  [["dead", "--help"], "  retry     send what was given up again, from its first attempt"],
  [["dead", "retry", "--help"], "  --reason exhausted|expired|rejected|gone|cancelled|expunged|error   "],
  [["help", "dead", "retry"], "  posthorn dead retry --app acme --reason exhausted --since 7d --yes"],
  [["send", "-h"], "posthorn send <app> [-] [flags]"],
])("%j shows help on standard output", async (args, line) => {
  const { code, stdout, stderr } = await posthorn(...args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  expect(stdout).toContain(line)
})

test("a group without a command is an error that shows the help", async () => {
  const { code, stdout, stderr } = await posthorn("dead")
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
  expect(stderr).toContain("posthorn dead <command>")
})

test("every action has a summary that reads as one sentence, and an example of itself", async () => {
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const loaded = await entry.load()
    if (!("command" in loaded)) continue
    const { command } = loaded
    const actions = isGroup(command)
      ? Object.entries(command.actions).map(([sub, action]) => [`${name} ${sub}`, action] as const)
      : ([[name, command]] as const)
    for (const [typed, { summary, examples, flags = {} }] of actions) {
      expect(summary, typed).toMatch(/^[a-z].*[^.]$/)
      expect(
        examples.some((example) => example.includes(`posthorn ${typed}`)),
        typed,
      ).toBe(true)
      for (const [flag, { about }] of Object.entries(flags)) expect(about, `${typed} --${flag}`).not.toBe("")
    }
  }
})
