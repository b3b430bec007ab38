/** `npm run bench`: all figures in one run, because machines differ. `docs/benchmarks.md` says how each is measured. */
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { findCommit, runAgainst } from "./harness/against.ts"
import { Bench, type Part } from "./harness/bench.ts"
import { figuresOf, isWithin } from "./harness/figures.ts"
import { problemOfTemporaryFolders } from "./harness/library.ts"
import { describeMachine, processorTime, stolenShare } from "./harness/machine.ts"
import { type Problem, type Report, toJson, toMarkdown, toTable } from "./harness/report.ts"
import { NODE_OPTIONS } from "./harness/settings.ts"
import { NotMeasured, VoidRun } from "./harness/void.ts"
import { PARTS } from "./parts/all.ts"

interface Flags {
  readonly quick?: boolean
  readonly json?: boolean
  readonly only?: string
  readonly markdown?: string
  readonly against?: string
  readonly rounds?: string
}

function readFlags(): Flags {
  try {
    const boolean = { type: "boolean" } as const
    const string = { type: "string" } as const
    const options = {
      quick: boolean,
      json: boolean,
      only: string,
      markdown: string,
      against: string,
      rounds: string,
    }
    return parseArgs({ options }).values
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function refuse(problem: string): never {
  console.error(problem)
  process.exit(2)
}

function chooseParts(quick: boolean, only: string | undefined): readonly Part[] {
  if (only === undefined) return PARTS.filter(({ isAside = false }) => !(quick && isAside))
  const chosen = PARTS.filter(({ names }) => names.some((name) => isWithin(name, only)))
  if (chosen.length > 0) return chosen
  const names = figuresOf(false)
    .map(({ name }) => name)
    .join(", ")
  return refuse(
    `--only ${only} is no figure; it takes one of these, or how some of them begin, as in deliver: ${names}`,
  )
}

async function measure(quick: boolean, parts: readonly Part[]): Promise<Report> {
  const startedAt = performance.now()
  const processors = processorTime()
  const bench = await Bench.open(quick)
  const values: { [name: string]: number } = {}
  const problems: Problem[] = []
  for (const { names, run } of parts) {
    const label = names.join(", ")
    const partStartedAt = performance.now()
    console.error(`${label} …`)
    settleDisk()
    try {
      const measured = await run(bench)
      await bench.receiver.checkNothingCame()
      Object.assign(values, measured)
    } catch (error) {
      const kind =
        error instanceof VoidRun ? "void" : error instanceof NotMeasured ? "not measured" : "failed"
      if (kind === "failed") console.error(error)
      for (const name of names) problems.push({ name, kind, reason: (error as Error).message })
      // Late requests of a part that failed must not count against the next part.
      await bench.receiver.checkNothingCame().catch(() => {})
    }
    const tookSeconds = (performance.now() - partStartedAt) / 1000
    console.error(
      `${label}: ${names.map((name) => values[name]?.toFixed(3) ?? "–").join(", ")} in ${tookSeconds.toFixed(1)} s`,
    )
  }
  values["receiver.perSecond"] = bench.bare.ceilingPerSecond
  values["receiver.measuredAgain"] = bench.bare.measuredAgain
  values["receiver.busyShare"] = bench.receiver.busiest
  const machine = describeMachine(bench.servers)
  await bench.close()
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  return {
    quick,
    seconds,
    ...machine,
    stolenShare: stolenShare(processors, processorTime()),
    values,
    problems,
  }
}

/** Syncs the writes of a part to the disk, so that the next part does not wait for them. A machine without `sync` goes on. */
function settleDisk(): void {
  spawnSync("sync", { stdio: "ignore" })
}

const RESULTS = /(?<=<!-- results -->\n).*(?=\n<!-- end of results -->)/s

const ROOT = fileURLToPath(new URL("..", import.meta.url))
const DEFAULT_ROUNDS = "5"

function commitToCompare(name: string): string {
  try {
    return findCommit(ROOT, name)
  } catch (error) {
    return refuse((error as Error).message)
  }
}

const { quick = false, json = false, only, markdown, against, rounds } = readFlags()
if (markdown !== undefined && (quick || only !== undefined))
  refuse("--markdown takes a full run: with --quick or --only it would replace the results of the last one")
if (against !== undefined && (json || markdown !== undefined))
  refuse("--against prints a table of its own: it takes neither --json nor --markdown")
if (rounds !== undefined && (against === undefined || !/^[1-9]\d*$/.test(rounds)))
  refuse("--rounds takes a number from 1 up, and only with --against")
const parts = chooseParts(quick, only)
if (!NODE_OPTIONS.every((option) => process.execArgv.includes(option)))
  refuse("Node does not have the options of npm start, with which everything is compared: use npm run bench")
const folderProblem = problemOfTemporaryFolders()
if (folderProblem !== null) refuse(folderProblem)
const figures = figuresOf(quick).filter(({ name }) => parts.some(({ names }) => names.includes(name)))
if (against !== undefined) {
  const commit = commitToCompare(against)
  const options = { root: ROOT, commit, rounds: Number(rounds ?? DEFAULT_ROUNDS), quick, only, figures }
  console.log(await runAgainst(options))
} else {
  const report = await measure(quick, parts)
  console.log(json ? JSON.stringify(toJson(report)) : toTable(report, figures))
  if (markdown !== undefined)
    writeFileSync(
      markdown,
      readFileSync(markdown, "utf8").replace(RESULTS, () => toMarkdown(report, figures)),
    )
  process.exitCode = report.problems.some(({ kind }) => kind !== "not measured") ? 1 : 0
}
