/** The pages cannot rot: their program runs, their SQL finds what it says, their examples fit the types, their links lead somewhere. */
import { execFile } from "node:child_process"
import { copyFileSync, existsSync, globSync, readFileSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative, resolve } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { runInNewContext } from "node:vm"
import { expect, onTestFinished, test } from "vitest"
import { NODE_OPTIONS } from "../bench/harness/settings.ts"
import { flagOf, NAMES, settingOf, variablesOf } from "../src/config/table.ts"
import { scheduledDelay } from "../src/core/backoff.ts"
import { PosthornError } from "../src/core/errors.ts"
import { FAILURE_CAUSES } from "../src/core/failure-causes.ts"
import { ID_PREFIXES } from "../src/core/ids.ts"
import { parsePolicy } from "../src/core/parse-policy.ts"
import { DEAD_REASONS } from "../src/core/policy.ts"
import { PRESETS, type PresetName } from "../src/core/presets.ts"
import { previewProtection } from "../src/core/protection-preview.ts"
import { EVENT_NAMES } from "../src/observe/public-events.ts"
import { parseEgress } from "../src/transport/egress/settings.ts"
import { vetUrl } from "../src/transport/egress/targets.ts"
import { type Ground, postgresGround } from "./support/ground.ts"
import { Harness, temporaryFolder } from "./support/harness.ts"
import { connect } from "./support/postgres-store.ts"
import { freshDatabase } from "./support/servers/postgres.ts"

const ROOT = fileURLToPath(new URL("..", import.meta.url))
const PAGES = globSync(["*.md", "docs/**/*.md"], { cwd: ROOT }).sort()

/** Runs a program with this Node; it ends with the test at the latest. */
function run(args: readonly string[], cwd: string): Promise<{ stdout: string }> {
  const over = new AbortController()
  onTestFinished(() => over.abort())
  return promisify(execFile)(process.execPath, args, { cwd, signal: over.signal })
}

const page = (name: string) => readFileSync(join(ROOT, name), "utf8")

/** The code blocks of a page in one language, each with the line where it begins. */
function blocks(name: string, language: string): { text: string; at: string }[] {
  const found = page(name).matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))
  return [...found].map((match) => ({
    text: match[1]!,
    at: `${name}:${match.input.slice(0, match.index).split("\n").length}`,
  }))
}

test("the README's program runs as pasted, and again on the same file", async () => {
  const [program, ...others] = blocks("README.md", "js")
  expect(others).toEqual([])
  const imported = '"./src/index.ts"'
  expect(program!.text).toContain(imported)
  const folder = temporaryFolder()
  const source = program!.text.replace(imported, JSON.stringify(join(ROOT, "src/index.ts")))
  writeFileSync(join(folder, "hello.mjs"), source)
  for (let time = 0; time < 2; time++) {
    const { stdout } = await run(["hello.mjs"], folder)
    expect(stdout).toMatch(/^msg_\w{27} is on disk, for 1 endpoint\ndelivered: \{/)
    expect(stdout).toContain("type: 'delivery.delivered'")
  }
})

/** The statements of the page for operators, block by block: those for both stores, and those for this one. */
function operatorsSql(store: string, placeholders: { readonly [name: string]: string }) {
  const found = blocks("docs/operations.md", "sql").filter(({ text }) => {
    const named = text.match(/^-- (SQLite|PostgreSQL)$/m)?.[1]
    return named === undefined || named === store
  })
  expect(found.length).toBeGreaterThan(20)
  return found.map(({ text, at }) => {
    const filled = text.replace(/\b[A-Z]+_ID\b|backup\.db/g, (name) => placeholders[name] ?? name)
    return { at, statements: filled.split(/;\s*$/m).filter((one) => one.trim() !== "") }
  })
}

test("every SQL block for operators finds or changes something in a real file", async () => {
  const { harness, placeholders } = await oneOfEverything()
  const folder = temporaryFolder()
  const snapshot = join(folder, "snapshot.db")
  await harness.sql(`VACUUM INTO '${snapshot}'`)
  const problems: string[] = []
  const sql = operatorsSql("SQLite", { ...placeholders, "backup.db": join(folder, "backup.db") })
  for (const [i, { statements, at }] of sql.entries()) {
    const file = join(dirname(snapshot), `block-${i}.db`)
    copyFileSync(snapshot, file)
    const db = new DatabaseSync(file)
    try {
      for (const statement of statements) {
        const problem = tryOut(db, statement)
        if (problem !== null) problems.push(`${at}: ${problem}`)
      }
    } catch (error) {
      problems.push(`${at}: ${(error as Error).message}`)
    } finally {
      db.close()
    }
  }
  expect(problems).toEqual([])
})

test("every SQL block for operators finds or changes something in a real database, each taken back", async () => {
  const store = await freshDatabase()
  const { placeholders } = await oneOfEverything(postgresGround({ store }))
  const operator = await connect(store)
  const problems: string[] = []
  for (const { statements, at } of operatorsSql("PostgreSQL", placeholders))
    for (const statement of statements) {
      await operator.query("BEGIN")
      const problem = await operator.query(statement).then(
        ({ rowCount }) => (rowCount === 0 ? "found or changed nothing" : null),
        (error) => error.message,
      )
      await operator.query("ROLLBACK")
      if (problem !== null) problems.push(`${at}: ${problem}`)
    }
  expect(problems).toEqual([])
})

function tryOut(db: DatabaseSync, sql: string): string | null {
  if (/^VACUUM/m.test(sql)) {
    db.exec(sql)
    return null
  }
  const statement = db.prepare(sql)
  if (statement.columns().length === 0) return statement.run().changes === 0 ? "changed nothing" : null
  const rows = statement.all()
  if (rows.length === 0) return "found nothing"
  return "integrity_check" in rows[0]! && rows[0].integrity_check !== "ok" ? "the file is damaged" : null
}

/** One of everything that an operator may look for, while it runs: delivered, waiting, dead, paused, being sent. */
async function oneOfEverything(ground?: Ground) {
  const harness = await Harness.start(ground === undefined ? {} : { ground })
  harness.receiver.always("/down", 500)
  harness.receiver.always("/hangs", () => {})
  const to = (path: string, more = {}) => harness.send({ path }, { eventType: path.slice(1), ...more })
  for (const path of ["/ok", "/hangs", "/paused"])
    await harness.endpoint({ eventTypes: [path.slice(1)] }, path)
  const down = await harness.endpoint(
    { eventTypes: ["down"], retry: { delays: [60], maxAttempts: 3 } },
    "/down",
  )
  const { data } = await harness.posthorn.endpoints.list("acme")
  await harness.posthorn.endpoints.pause("acme", data.find(({ url }) => url.endsWith("/paused"))!.id)
  for (const path of ["/ok", "/paused", "/down", "/hangs"]) await to(path)
  await to("/down", { maxAttempts: 1 })
  const [dead] = await harness.published("delivery.dead", 1)
  await harness.published("delivery.attempt", 3)
  await harness.receiver.arrived("/hangs", 1)
  const placeholders = { DELIVERY_ID: dead!.webhook_delivery_id, ENDPOINT_ID: down, SUB_ID: down }
  return { harness, placeholders }
}

test("every policy mistake in the table gives the message beside it", () => {
  const rows = [...page("docs/policies.md").matchAll(/^\| `(\{.*\})` \| `(.*)` \|$/gm)]
  expect(rows.length).toBeGreaterThan(10)
  for (const [, input, message] of rows) {
    const mistake = () => parsePolicy(runInNewContext(`(${input})`))
    expect(mistake, input).toThrow(PosthornError)
    expect(mistake, input).toThrow(expect.objectContaining({ message, field: message!.split(" ")[0] }))
  }
})

test("the table of a policy's fields has every field, and the preview every field that protects", () => {
  const [, section] = page("docs/policies.md").split("\n## Fields\n")
  const documented = [...section!.split("\n## ")[0]!.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
  expect(documented).toEqual(expect.arrayContaining(Object.keys(PRESETS.standard)))
  const [, preview] = page("docs/cli.md").split("$ posthorn policies preview gateway\n")
  const lines = [...preview!.split("```")[0]!.matchAll(/^(\w+) +(off: .*)$/gm)].map(([, name, text]) => [
    name,
    text,
  ])
  const protection = Object.entries(previewProtection(PRESETS.gateway))
  expect(lines).toEqual(protection.map(([name, { text }]) => [name, text]))
})

test("the presets' delays in the table are the presets'", () => {
  const rows = [...page("docs/policies.md").matchAll(/^\| `(\w+)` \| (\d+, [^|(]*)/gm)]
  expect(rows.map(([, name]) => name)).toEqual(Object.keys(PRESETS))
  for (const [, name, delays] of rows) {
    const seconds = delays!.match(/\d+/g)!.map(Number)
    const policy = PRESETS[name as PresetName]
    expect(seconds, name).toEqual(seconds.map((_, i) => scheduledDelay(policy.delays, i + 1)))
  }
})

test("the concepts page has every kind of id and every dead reason", () => {
  const concepts = page("docs/concepts.md")
  const ids = [...concepts.match(/^Ids say .*?followed by/ms)![0].matchAll(/`(\w+)_…`/g)].map(([, id]) => id)
  expect(ids.sort()).toEqual([...ID_PREFIXES].sort())
  const [, reasons] = concepts.split("| `dead_reason` | meaning |\n| --- | --- |\n")
  const listed = [...reasons!.split("\n\n")[0]!.matchAll(/^\| `(\w+)`/gm)].map(([, reason]) => reason)
  expect(listed.sort()).toEqual([...DEAD_REASONS].sort())
})

test("the concepts page has every field of every event", async () => {
  const harness = await Harness.start()
  await harness.endpoint({}, "/ok")
  harness.receiver.always("/down", 500)
  await harness.endpoint({ retry: { delays: [60], maxAttempts: 1 } }, "/down")
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.published("delivery.dead", 1)
  const [, section] = page("docs/concepts.md").split("\n## Events\n")
  const documented = new Set([...section!.split("\n## ")[0]!.matchAll(/`(\w+)`/g)].map(([, word]) => word))
  const fields = new Set(harness.events.flatMap(Object.keys))
  expect([...fields].filter((field) => !documented.has(field))).toEqual([])
})

test("only the page about the founding documents speaks of seeds", () => {
  const others = PAGES.filter((name) => name !== "docs/seeds.md")
  const found = others.filter((name) => /\bseeds?('|\u2019)|\bseed 00\d|\bthe seeds\b/i.test(page(name)))
  expect(found).toEqual([])
})

/** The rows of the table under a heading of the security page that begins with these words. */
function securityTable(head: string): string[] {
  const [, rows = ""] = page("docs/security.md").split(`\n| ${head} |`, 2)
  return rows.split("\n\n", 1)[0]!.split("\n").slice(2)
}

test("every URL that the security page lists as refused is refused", () => {
  const { rules } = parseEgress()
  const ports = securityTable("what | ports").flatMap((row) => row.match(/\d+/g) ?? [])
  const addresses = securityTable("IPv4, refused").flatMap((row) => row.match(/\d+\.\d+\.\d+\.\d+/g) ?? [])
  expect([ports.length, addresses.length]).toEqual([39, 19])
  const targets = [...ports.map((port) => `example.com:${port}`), ...addresses]
  expect(targets.filter((target) => vetUrl(`http://${target}/`, rules).ok)).toEqual([])
})

test("the security page has every cause and every setting", () => {
  const words = (rows: readonly string[]) => rows.flatMap((row) => row.split("|")[1]!.match(/\w+/g)!)
  expect(words(securityTable("cause")).sort()).toEqual([...FAILURE_CAUSES].sort())
  const settings = securityTable("`egress.…`")
  const unknown = () => parseEgress({ known: true } as never)
  expect(unknown).toThrow(`known are ${words(settings).join(", ")}`)
  for (const variable of settings.map((row) => row.match(/POSTHORN_\w+/)![0]))
    for (const name of ["docs/library.md", "docs/operations.md"])
      expect(page(name)).toContain(`\`${variable}\``)
})

test("the page of the command line has every setting, with its flag, its variable and what holds without it", () => {
  const rows = [...page("docs/cli.md").matchAll(/^\| `([\w.]+)` \| (.+?) \| (`POSTHORN_.+?) \| (.+?) \|/gm)]
  const shown = rows.map(([, ...cells]) => cells.map((cell) => cell!.replaceAll("`", "")))
  const known = NAMES.map((name) => {
    const { fallback, kind } = settingOf(name)
    const flag = flagOf(name)
    const otherwise = fallback === null ? "–" : kind.show(fallback)
    return [name, flag === null ? "–" : `--${flag}`, variablesOf(name).join(", "), otherwise]
  })
  expect(shown).toEqual(known)
})

test("Node has the same options wherever Posthorn is started, and the pages name them", () => {
  const { start, bench } = JSON.parse(page("package.json")).scripts
  for (const text of [start, bench, page("docs/benchmarks.md")])
    expect(text).toContain(NODE_OPTIONS.join(" "))
  expect(page("Dockerfile")).toContain(NODE_OPTIONS.map((option) => `"${option}"`).join(", "))
  for (const option of NODE_OPTIONS) expect(page("docs/operations.md")).toContain(`\`${option}\``)
})

test("every TypeScript example fits the types", async () => {
  const folder = temporaryFolder()
  const examples = PAGES.flatMap((name) => blocks(name, "ts"))
  expect(examples.length).toBeGreaterThan(10)
  for (const [i, { text, at }] of examples.entries())
    writeFileSync(join(folder, `${basename(at).replace(":", "-line-")}-${i}.mts`), `${text}\nexport {}\n`)
  writeFileSync(join(folder, "given.d.ts"), GIVEN)
  const compilerOptions = {
    paths: {
      posthorn: [join(ROOT, "src/index.ts")],
      standardwebhooks: [join(ROOT, "node_modules/standardwebhooks/dist/index.d.ts")],
      svix: [join(ROOT, "node_modules/svix/dist/index.d.mts")],
    },
    typeRoots: [join(ROOT, "node_modules/@types")],
    noUnusedLocals: false,
  }
  const config = { extends: join(ROOT, "tsconfig.json"), compilerOptions, include: ["*"] }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc")
  const mistakes = await run([tsc, "-p", folder], folder).then(
    () => "",
    (error) => error.stdout || error.message,
  )
  expect(mistakes).toBe("")
})

/** Names that the examples take as given. */
const GIVEN = `
declare const posthorn: import("posthorn").Posthorn
declare const openPosthorn: typeof import("posthorn").openPosthorn
declare const verifySignature: typeof import("posthorn").verifySignature
declare const client: { query(text: string): Promise<unknown> }
declare const url: string
declare const id: string
declare const body: string
declare const headers: Record<string, string>
`

test("the page of faults has every test of test/faults beside its number", () => {
  const numbered = globSync("test/faults/[0-9][0-9]-*.test.ts", { cwd: ROOT })
  expect(numbered.length).toBeGreaterThan(20)
  const rows = [...page("docs/faults.md").matchAll(/^\| (\d+) \|.*$/gm)]
  const linked = rows.flatMap(([row, number]) =>
    [...row.matchAll(/\]\(\.\.\/(test\/faults\/[^)]+)\)/g)].map(([, file]) => `${number}: ${file}`),
  )
  expect(linked.sort()).toEqual(
    numbered.map((file) => `${Number(basename(file).slice(0, 2))}: ${file}`).sort(),
  )
})

test("every row of the page of faults links to a test, or says what is missing", () => {
  const rows = [...page("docs/faults.md").matchAll(/^\| (\d+) \|.*\| (.+) \|$/gm)]
  expect(rows.length).toBeGreaterThan(20)
  const bare = rows.filter(([, , shownBy]) => !/\.test\.ts\)|not (tested|built) yet/.test(shownBy!))
  expect(bare.map(([row]) => row)).toEqual([])
})

test("every relative link leads to a file, and its fragment to a heading there", () => {
  const broken: string[] = []
  for (const name of PAGES) {
    const prose = page(name).replace(/^```.*?^```/gms, "")
    for (const [, target] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target!)) continue
      const [path = "", fragment] = target!.split("#")
      const file = path === "" ? join(ROOT, name) : resolve(ROOT, dirname(name), path)
      if (!existsSync(file)) broken.push(`${name}: ${target}`)
      else if (fragment !== undefined && !headings(relative(ROOT, file)).includes(fragment))
        broken.push(`${name}: no heading ${target}`)
    }
  }
  expect(broken).toEqual([])
})

test("every file and folder that a page names in code format exists", () => {
  const top = ["bench", "bin", "dashboard", "deploy", "docs", "examples", "src", "test"]
  const files = globSync(`{${top.join()}}/**`, { cwd: ROOT, exclude: (name) => name === "node_modules" })
  const known = files.map((file) => `/${file.replaceAll("\\", "/")}`)
  const exists = (named: string) => {
    const path = named.replace(/\/$/, "")
    if (path.includes("*")) return globSync(path, { cwd: ROOT }).length > 0
    return known.some((file) => file.endsWith(`/${path}`))
  }
  const isPath = (word: string) => top.some((folder) => word.startsWith(`${folder}/`))
  // Pages for developers also name files and folders by the end of their path: `lane-run.ts`, `routes/`.
  const isFile = (word: string) => /\.(ts|c)$|^[\w/-]+\/$/.test(word)
  const isForDevelopers = (name: string) => /docs\/(architecture|http1|interop|decisions)/.test(name)
  const spans = PAGES.flatMap((name) => {
    const prose = page(name).replace(/^```.*?^```/gms, "")
    const words = [...prose.matchAll(/`([\w./*-]+)`/g)].map(([, word]) => word!)
    return words
      .filter((word) => isPath(word) || (isForDevelopers(name) && isFile(word)))
      .map((word) => ({ name, word }))
  })
  expect(spans.length).toBeGreaterThan(100)
  expect(spans.filter(({ word }) => !exists(word))).toEqual([])
})

function headings(name: string): string[] {
  const lines = page(name).matchAll(/^#+ (.*)$/gm)
  return [...lines].map(([, text]) =>
    text!
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  )
}

test("every event that can be listened to is described", () => {
  const page = readFileSync(join(ROOT, "docs/concepts.md"), "utf8")
  expect(EVENT_NAMES.filter((name) => !page.includes(`| \`${name}\` |`))).toEqual([])
})
