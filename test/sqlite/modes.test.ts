/** The files of a database are readable by their owner alone, from the moment they are made, whatever the umask is. */
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { pino } from "pino"
import { expect, onTestFinished, test } from "vitest"
import { openPosthorn } from "../../src/posthorn.ts"
import { temporaryFolder } from "../support/combination.ts"
import { Program } from "../support/process.ts"
import { requireTool } from "../support/tools.ts"

const HOST = new URL("../crash/ending-child.ts", import.meta.url)
const COMMAND = new URL("../../src/cli/main.ts", import.meta.url)

function modes(folder: string): { [name: string]: string } {
  const names = readdirSync(folder).sort()
  return Object.fromEntries(
    names.map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]),
  )
}

/** A command that runs a program without a umask, and writes down the files that it makes and the modes that it changes. */
function withoutUmask(log: string): string[] {
  const trace = [
    "-D",
    "-f",
    "--seccomp-bpf",
    "-o",
    log,
    "-e",
    "trace=open,openat,creat,chmod,fchmod,fchmodat",
  ]
  return ["sh", "-c", 'umask 000; exec "$@"', "sh", requireTool("strace"), ...trace]
}

/** The calls that made a file of the folder with another mode, and those that changed a mode. */
function laxCalls(log: string, folder: string): string[] {
  // The system's caches and the programs' own are elsewhere.
  const lines = readFileSync(log, "latin1")
    .split("\n")
    .filter((line) => line.includes(`${folder}/`))
  const making = lines.filter((line) => line.includes("O_CREAT"))
  // The first call for a file makes it.
  const made = [...Map.groupBy(making, (line) => /"(.*?)"/.exec(line)![1])].map(([, [first]]) => first!)
  return [...made.filter((line) => !/, 0600\b/.test(line)), ...lines.filter((line) => /chmod/.test(line))]
}

test.for([
  ["the library", HOST, (store: string) => ["exit", store]],
  ["a command on a local store", COMMAND, (store: string) => ["apps", "create", "Acme", "--store", store]],
] as const)("every file that %s makes is made with 0600", async ([_who, program, args]) => {
  const folder = temporaryFolder()
  const log = join(temporaryFolder(), "trace")
  const made = Program.start(program, args(`sqlite:${folder}/posthorn.db`), { under: withoutUmask(log) })
  expect(await made.ended, made.stderr).toMatchObject({ code: 0 })
  expect(Object.keys(modes(folder))).toEqual(expect.arrayContaining(["posthorn.db", "posthorn.db.key"]))
  expect(new Set(Object.values(modes(folder)))).toEqual(new Set(["600"]))
  expect(laxCalls(log, folder)).toEqual([])
})

test("an open database, its log, index, owner and key have 0600, also behind a link that leads nowhere yet", async () => {
  const before = process.umask(0)
  onTestFinished(() => void process.umask(before))
  const folder = temporaryFolder()
  const path = join(folder, "link.db")
  symlinkSync(join(folder, "real.db"), path)
  const posthorn = await openPosthorn({ store: `sqlite:${path}`, logger: "silent", encryptionKey: KEY })
  const { "link.db": _link, ...files } = modes(folder)
  expect(Object.keys(files).map((name) => name.replace(/^\w+/, ""))).toEqual(
    expect.arrayContaining([".db", ".db-shm", ".db-wal"]),
  )
  expect(new Set(Object.values(files))).toEqual(new Set(["600"]))
  await posthorn.close()
})

test("a file that others may read keeps its mode, and the log says so", async () => {
  const folder = temporaryFolder()
  const file = join(folder, "posthorn.db")
  const lines: string[] = []
  const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) })
  const open = () => openPosthorn({ store: `sqlite:${file}`, logger })
  await (await open()).close()
  expect(lines).toEqual([])
  chmodSync(file, 0o640)
  await (await open()).close()
  expect(lines.join()).toContain(`other users of this machine may open ${file}`)
  expect(modes(folder)["posthorn.db"]).toBe("640")
})

const KEY = "00".repeat(32)
