/** `npm run bench -- --against COMMIT`: an A/B run that measures another commit and the working tree alternately. */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { pathToFileURL } from "node:url"
import { type Figure, isLessBetter, isWithin } from "./figures.ts"
import { temporaryFolder } from "./library.ts"
import { aligned, rounded } from "./report.ts"
import { byTurns } from "./rounds.ts"
import { median } from "./statistics.ts"

const FIGURES = "bench/harness/figures.ts"

export interface AgainstOptions {
  /** The folder of the working tree. */
  readonly root: string
  /** The full hash of the other commit. */
  readonly commit: string
  readonly rounds: number
  readonly quick: boolean
  readonly only: string | undefined
  /** The figures that the working tree measures. */
  readonly figures: readonly Figure[]
}

/** The full hash of a commit that has figures to compare. */
export function findCommit(root: string, name: string): string {
  let commit: string
  try {
    commit = git(root, "rev-parse", "--verify", "--end-of-options", `${name}^{commit}`)
  } catch {
    throw new Error(`--against ${name}: git finds no such commit in this repository`)
  }
  if (git(root, "ls-tree", "--full-tree", commit, FIGURES) === "")
    throw new Error(`--against ${name}: that commit has no ${FIGURES}, so there is nothing to compare`)
  return commit
}

/** The table of an A/B run. The commit's worktree is removed at the end, also when a signal or an error ends the run. */
export async function runAgainst(options: AgainstOptions): Promise<string> {
  const { root, commit, rounds, quick, only, figures } = options
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  process.once("SIGINT", stop).once("SIGTERM", stop)
  const worktree = temporaryFolder()
  git(root, "worktree", "add", "--detach", worktree, commit)
  try {
    setUp(worktree, root)
    const known = await figuresIn(worktree, quick)
    const isKnown = only === undefined || known.some(({ name }) => isWithin(name, only))
    const flags = ["--json", ...(quick ? ["--quick"] : []), ...(only === undefined ? [] : ["--only", only])]
    let started = 0
    const run = (folder: string, label: string) => {
      console.error(`run ${++started}, ${label}`)
      return runBench(folder, flags, stopping.signal)
    }
    const { theirs, ours } = await byTurns(
      {
        theirs: async () => (isKnown ? run(worktree, `commit ${commit}`) : {}),
        ours: () => run(root, "working tree"),
      },
      { warmups: 0, rounds, mostMs: Number.POSITIVE_INFINITY },
    )
    return toAgainstTable(commit, { figures: known, runs: theirs }, { figures, runs: ours })
  } finally {
    git(root, "worktree", "remove", "--force", worktree)
    process.off("SIGINT", stop).off("SIGTERM", stop)
  }
}

function git(root: string, ...args: string[]): string {
  return execFileSync("git", ["-C", root, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trim()
}

/** Links the working tree's packages where the lock file is the same. The peers' packages are otherwise installed by the benchmark itself. */
function setUp(worktree: string, root: string): void {
  for (const folder of ["", "bench"]) {
    const [mine, its] = [root, worktree].map((tree) => join(tree, folder))
    const [lock, itsLock] = [mine!, its!].map((tree) => join(tree, "package-lock.json"))
    const packages = join(mine!, "node_modules")
    if (existsSync(packages) && existsSync(itsLock!) && readFileSync(lock!).equals(readFileSync(itsLock!)))
      symlinkSync(packages, join(its!, "node_modules"), "junction")
  }
  if (!existsSync(join(worktree, "node_modules")))
    execFileSync(process.execPath, ["scripts/setup.mjs"], { cwd: worktree, stdio: ["ignore", 2, 2] })
}

async function figuresIn(worktree: string, quick: boolean): Promise<readonly Figure[]> {
  const { figuresOf } = await import(pathToFileURL(join(worktree, FIGURES)).href)
  return figuresOf(quick)
}

/** One run of a tree's own `npm run bench`, with the Node of this process. */
async function runBench(folder: string, flags: readonly string[], signal: AbortSignal): Promise<Run> {
  const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const [, ...command] = scripts.bench.split(" ")
  const child = spawn(process.execPath, [...command, ...flags], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
    signal,
  })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "close")])
  if (output === "") throw new Error(`the benchmark in ${folder} ended with ${code} and without figures`)
  return JSON.parse(output)
}

/** The JSON of one run: values nested by the words of their names; null is a figure without a value. */
export type Run = { readonly [word: string]: unknown }

export interface Side {
  readonly figures: readonly Figure[]
  readonly runs: readonly Run[]
}

export function toAgainstTable(commit: string, theirs: Side, ours: Side): string {
  const short = commit.slice(0, 10)
  const head = ["figure", short, "working tree", "ratio", "lowest", "highest", "rounds"]
  const known = new Set(ours.figures.map(({ name }) => name))
  const dropped = theirs.figures.filter(({ name }) => !known.has(name) && isMeasured(theirs.runs, name))
  const rows = [...ours.figures, ...dropped].map((figure) => {
    const { name } = figure
    const ratios = ratiosOf(figure, theirs.runs, ours.runs)
    const spread = ratios.length === 0 ? [] : [median(ratios), Math.min(...ratios), Math.max(...ratios)]
    const shown = [0, 1, 2].map((i) => cell(spread[i]))
    const medians = [theirs, ours].map(({ runs }) => cell(medianOf(runs, name)))
    const rounds = !isMeasured(theirs.runs, name)
      ? "only in the working tree"
      : isMeasured(ours.runs, name)
        ? `${ratios.length}`
        : `only in ${short}`
    return [name, ...medians, ...shown, rounds]
  })
  return ["A ratio above 1 says that the working tree is better.", "", ...aligned([head, ...rows])].join("\n")
}

/** The ratios of the rounds in which both have a value. */
export function ratiosOf(figure: Figure, theirs: readonly Run[], ours: readonly Run[]): number[] {
  return theirs.flatMap((run, round) => {
    const [their, our] = [valueIn(run, figure.name), valueIn(ours[round]!, figure.name)]
    if (typeof their !== "number" || typeof our !== "number") return []
    return [isLessBetter(figure) ? their / our : our / their]
  })
}

/** Undefined where no run has a value. */
function medianOf(runs: readonly Run[], name: string): number | undefined {
  const values = runs.map((run) => valueIn(run, name)).filter((value) => typeof value === "number")
  return values.length === 0 ? undefined : median(values)
}

function cell(value: number | undefined): string {
  return value === undefined ? "–" : `${rounded(value)}`
}

function isMeasured(runs: readonly Run[], name: string): boolean {
  return runs.some((run) => valueIn(run, name) !== undefined)
}

function valueIn(run: Run, name: string): unknown {
  return name.split(".").reduce<unknown>((at, word) => (at as Run | null | undefined)?.[word], run)
}
