/**
 * `npm run interop`: the HTTP/1.1 client against real servers on this machine, as a table. `-- nginx go` runs only those whose name has one
 * of the words, `--install` first installs what is missing (Debian packages as root, Python packages in a virtual environment), `--write`
 * puts the table into docs/interop.md.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { CASES } from "./cases.ts"
import { type Report, runServer } from "./run.ts"
import { findServer, SERVERS, type ServerKind, VENV } from "./servers.ts"

const PAGE = new URL("../../docs/interop.md", import.meta.url)
const TABLE = /(<!-- results -->\n)[\s\S]*(?=<!-- end of results -->)/

function install(missing: readonly ServerKind[]): void {
  const packages = (isPip: boolean) => [
    ...new Set(missing.filter(({ pip = false }) => pip === isPip).map((kind) => kind.package)),
  ]
  const run = (program: string, ...given: string[]) => execFileSync(program, given, { stdio: "inherit" })
  if (packages(false).length > 0)
    run("apt-get", "install", "-y", "--no-install-recommends", ...packages(false))
  if (packages(true).length === 0) return
  if (!existsSync(VENV)) run("python3", "-m", "venv", VENV)
  run(join(VENV, "bin", "pip"), "install", "--quiet", ...packages(true))
}

function table(reports: readonly Report[]): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`
  const names = Object.keys(CASES)
  return [
    row(["server", "version", ...names]),
    row(["---", "---", ...names.map(() => "---")]),
    ...reports.map(({ name, version, cells }) =>
      row([name, version, ...names.map((one) => (cells[one]!.startsWith("✗") ? "✗" : cells[one]!))]),
    ),
    "",
  ].join("\n")
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { install: { type: "boolean", default: false }, write: { type: "boolean", default: false } },
})
const words = positionals.map((word) => word.toLowerCase())
const chosen = SERVERS.filter(
  ({ name }) => words.length === 0 || words.some((word) => name.toLowerCase().includes(word)),
)
if (values.install) install(chosen.filter((kind) => findServer(kind) === null))

const reports: Report[] = []
const skipped: string[] = []
const problems: string[] = []
for (const kind of chosen) {
  const program = findServer(kind)
  if (program === null) {
    skipped.push(`SKIPPED ${kind.name}: ${kind.program} is not on this machine (package ${kind.package})`)
    continue
  }
  console.error(`${kind.name} …`)
  try {
    const report = await runServer(kind, program)
    reports.push(report)
    for (const [name, cell] of Object.entries(report.cells))
      if (cell.startsWith("✗")) problems.push(`${kind.name}, ${name}: ${cell}`)
  } catch (error) {
    problems.push(`${kind.name}: ✗ ${(error as Error).message}`)
  }
}
console.log(table(reports))
for (const line of [...skipped, ...problems]) console.log(line)
if (values.write) {
  const page = readFileSync(PAGE, "utf8")
  writeFileSync(
    PAGE,
    page.replace(TABLE, (_all, start: string) => `${start}${table(reports)}`),
  )
}
process.exitCode = problems.length > 0 || reports.length === 0 ? 1 : 0
