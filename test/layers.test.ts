/** Dependencies between the folders of `src/` point down only (docs/architecture.md): every import is compared with a table. */
import { globSync, readFileSync } from "node:fs"
import { posix } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"

const SRC = fileURLToPath(new URL("../src/", import.meta.url))

const BASE = ["core", "observe", "end-of-tick.ts", "version.ts"]
/** The files of the store that a schedule in the same database may use. */
const DATABASE = ["connection.ts", "statement.ts", "lane-functions.ts"].map(
  (file) => `store/postgres/${file}`,
)

/** Folder or file → the folders and files that it may import, beside its own. Everything else in `src/` is the library. */
const LAYERS: { readonly [layer: string]: readonly string[] } = {
  core: [],
  "end-of-tick.ts": [],
  "version.ts": [],
  observe: ["core"],
  "alerts/notification.ts": [],
  agent: ["core", "observe", "version.ts"],
  transport: [...BASE, "alerts/notification.ts"],
  store: BASE,
  "store/sqlite": [...BASE, "store"],
  "store/postgres": [...BASE, "store"],
  schedule: [...BASE, "store"],
  "schedule/postgres": [...BASE, "store", "schedule", ...DATABASE],
  "schedule/redis": [...BASE, "store", "schedule", "schedule/postgres", ...DATABASE],
  engine: [...BASE, "transport", "store", "schedule"],
  api: [...BASE, "alerts/notification.ts", "store", "library"],
  cli: [...BASE, "agent", "store/postgres", "engine", "library", "api"],
}

/** The longest entry of the table that the file is in. */
function layerOf(file: string): string {
  const layers = Object.keys(LAYERS).filter((layer) => file === layer || file.startsWith(`${layer}/`))
  return layers.sort((a, b) => b.length - a.length)[0] ?? "library"
}

function mayImport(file: string, other: string): boolean {
  const [from, to] = [layerOf(file), layerOf(other)]
  if (from === "library") return to !== "api" && to !== "cli"
  return from === to || LAYERS[from]!.includes(to) || LAYERS[from]!.includes(other)
}

function importsOf(file: string): string[] {
  const found = readFileSync(SRC + file, "utf8").matchAll(/(?:\bfrom|\bimport\(?) ?"(\.[^"]+)"/g)
  return [...found].map(([, path]) => posix.join(posix.dirname(file), path!))
}

test("no file imports from a layer above its own or from a sibling", () => {
  const files = globSync("**/*.ts", { cwd: SRC })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => !/(\.test|conformance(\/.+)?)\.ts$/.test(file))
  for (const layer of Object.keys(LAYERS)) expect(files.map(layerOf)).toContain(layer)
  const imports = files.flatMap((file) => importsOf(file).map((other) => [file, other] as const))
  expect(imports.length).toBeGreaterThan(500)
  expect(imports.filter(([file, other]) => !mayImport(file, other))).toEqual([])
})

test.each([
  ["store/postgres/schema.ts", "schedule/postgres/functions.ts"],
  ["store/sqlite/store.ts", "store/postgres/connection.ts"],
  ["schedule/postgres/lease.ts", "store/postgres/accept.ts"],
  ["transport/router.ts", "store/store.ts"],
  ["core/settle.ts", "observe/log.ts"],
  ["engine/engine.ts", "posthorn.ts"],
  ["agent/agent.ts", "store/store.ts"],
  ["api/server.ts", "agent/agent.ts"],
  ["resources/messages.ts", "api/server.ts"],
])("the check refuses that %s imports %s", (file, other) => {
  expect(mayImport(file, other)).toBe(false)
})
