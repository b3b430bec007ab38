/** A/B runs of the benchmark: the arithmetic, the flags, and a run on a small repository. */
import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, onTestFinished, test, vi } from "vitest"
import { Program } from "../test/support/process.ts"
import { findCommit, ratiosOf, runAgainst, toAgainstTable } from "./harness/against.ts"
import { figuresOf, isLessBetter } from "./harness/figures.ts"
import { temporaryFolder } from "./harness/library.ts"
import { NODE_OPTIONS } from "./harness/settings.ts"

const SPEED = { name: "speed.ratio", atLeast: 1, condition: "" }
const DELAY = { name: "delay.p99ms", atMost: 1, condition: "" }

const speeds = (...values: (number | null)[]) => values.map((ratio) => ({ speed: { ratio } }))

test("a ratio above 1 is better, whether more or less of a figure is", () => {
  expect(ratiosOf(SPEED, speeds(2), speeds(3))).toEqual([1.5])
  expect(ratiosOf(DELAY, [{ delay: { p99ms: 3 } }], [{ delay: { p99ms: 2 } }])).toEqual([1.5])
})

test("less is better of every time and of memory, and of no throughput", () => {
  const less = figuresOf(false).filter(isLessBetter)
  expect(less.map(({ name }) => name)).toEqual(
    figuresOf(false)
      .map(({ name }) => name)
      .filter((name) => /ms$|Mb$|p99ratio$/i.test(name)),
  )
})

test("a round in which a figure was void on one side has no ratio", () => {
  expect(ratiosOf(SPEED, speeds(1, null, 4), speeds(2, 3, null))).toEqual([2])
})

test("the table has the median of each side, and of the ratios with the lowest and the highest", () => {
  const theirs = { figures: [SPEED], runs: speeds(1, 2, 4) }
  const table = toAgainstTable("0123456789abcdef", theirs, { figures: [SPEED], runs: speeds(3, 3, 3) })
  expect(table).toMatch(/^figure +0123456789 +working tree +ratio +lowest +highest +rounds$/m)
  expect(table).toMatch(/^speed\.ratio +2 +3 +1\.5 +0\.75 +3 +3$/m)
})

test("a figure that one side alone measures is shown as such", () => {
  const theirs = { figures: [SPEED], runs: speeds(2) }
  const table = toAgainstTable("0123456789abcdef", theirs, {
    figures: [DELAY],
    runs: [{ delay: { p99ms: 3 } }],
  })
  expect(table).toMatch(/^delay\.p99ms +– +3 +– +– +– +only in the working tree$/m)
  expect(table).toMatch(/^speed\.ratio +2 +– +– +– +– +only in 0123456789$/m)
})

test("a figure that was void in every round has no ratio", () => {
  const side = { figures: [SPEED], runs: speeds(null) }
  expect(toAgainstTable("0123456789abcdef", side, side)).toMatch(/^speed\.ratio +– +– +– +– +– +0$/m)
})

test.for([
  { flags: "--against no-such-commit", problem: "git finds no such commit" },
  { flags: "--against HEAD --markdown page.md", problem: "takes neither --json nor --markdown" },
  { flags: "--against HEAD --rounds 0", problem: "--rounds takes a number from 1 up" },
  { flags: "--rounds 3", problem: "only with --against" },
])("$flags is refused: $problem", async ({ flags, problem }) => {
  const program = Program.start(new URL("./main.ts", import.meta.url), flags.split(" "), {
    nodeOptions: NODE_OPTIONS,
  })
  expect(await program.ended).toMatchObject({ code: 2 })
  expect(program.stderr).toContain(problem)
})

function git(root: string, ...args: string[]): string {
  const settings = ["user.name=a", "user.email=a@example.com", "commit.gpgsign=false"]
  const flags = ["-C", root, ...settings.flatMap((setting) => ["-c", setting])]
  return execFileSync("git", [...flags, ...args], { input: "", encoding: "utf8", stdio: "pipe" }).trim()
}

/** A repository whose benchmark prints fixed figures: its commit has a speed of 2, its working tree one of 3. */
function makeRepository(): string {
  // Git sets these for its hooks, where they would lead to the repository of the hook.
  for (const name of ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"]) vi.stubEnv(name, undefined)
  onTestFinished(() => void vi.unstubAllEnvs())
  const root = temporaryFolder()
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  write("package.json", JSON.stringify({ scripts: { bench: "node bench/main.js" } }))
  write("package-lock.json", "{}")
  write("node_modules/speed/index.js", "exports.unit = 1")
  write(".gitignore", "node_modules")
  write("bench/harness/figures.ts", `export const figuresOf = () => [${JSON.stringify(SPEED)}]`)
  const main = (speed: number) =>
    `console.log(JSON.stringify({ speed: { ratio: ${speed} * require("speed").unit } }))`
  git(root, "init")
  write("bench/main.js", main(2))
  git(root, "add", ".")
  git(root, "commit", "-m", "slow")
  write("bench/main.js", main(3))
  return root
}

test("a commit is measured in a worktree of its own with the same packages, and the worktree is removed", async () => {
  const root = makeRepository()
  const commit = findCommit(root, "HEAD")
  const table = await runAgainst({ root, commit, rounds: 2, quick: true, only: undefined, figures: [SPEED] })
  expect(table).toMatch(/^speed\.ratio +2 +3 +1\.5 +1\.5 +1\.5 +2$/m)
  expect(git(root, "worktree", "list").split("\n")).toHaveLength(1)
  expect(readdirSync(join(root, "node_modules"))).toEqual(["speed"])
})

test("a benchmark that fails ends the run with an error, and the worktree is removed", async () => {
  const root = makeRepository()
  writeFileSync(join(root, "bench/main.js"), "process.exit(3)")
  const options = { root, commit: findCommit(root, "HEAD"), rounds: 1, quick: true, only: undefined }
  await expect(runAgainst({ ...options, figures: [SPEED] })).rejects.toThrow(
    "ended with 3 and without figures",
  )
  expect(git(root, "worktree", "list").split("\n")).toHaveLength(1)
})

test("a commit without figures is refused", () => {
  const root = makeRepository()
  const commit = git(root, "commit-tree", git(root, "mktree"), "-m", "empty")
  expect(() => findCommit(root, commit)).toThrow("nothing to compare")
})
