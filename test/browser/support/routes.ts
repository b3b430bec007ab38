/** The pages of the route tables, each with addresses that exist on a site with the data of `world.ts`. */
import { readFileSync } from "node:fs"
import type { Site } from "./site.ts"
import type { Tab } from "./tab.ts"

export interface Example {
  readonly pattern: string
  readonly path: string
}

/** Components cannot be loaded outside of a browser: the patterns are read from the text. */
function patternsOf(file: string): string[] {
  const text = readFileSync(new URL(`../../../dashboard/src/pages/${file}`, import.meta.url), "utf8")
  return [...text.matchAll(/pattern: "([^"]+)"/g)].map(([, pattern]) => pattern!)
}

export const DASHBOARD_PATTERNS = patternsOf("pages.tsx")
export const PORTAL_PATTERNS = patternsOf("portal.tsx")

interface Row {
  readonly id: string
}
type Values = readonly { readonly [parameter: string]: string }[]

/** For each pattern with parameters: their values, of one row or more. */
export interface ExampleValues {
  readonly [pattern: string]: (site: Site) => Values | Promise<Values>
}

const EXAMPLES: ExampleValues = {
  "/endpoints/:app/:id": () => ofAcme("healthy", "rejecting", "waiting", "gone", "tripped", "hub", "absent"),
  "/messages/:app/:id": async (site) => [
    { app: "acme", id: "invoice-17" },
    { app: "acme", id: await newest(site, "/app/acme/msg?event_types=inbound.github") },
  ],
  "/deliveries/:id": async (site) =>
    Promise.all(
      ["delivered", "dead", "failed", "pending"].map(async (status) => ({
        id: await newest(site, `/delivery?status=${status}`),
      })),
    ),
  "/dead-letters/tasks/:id": async (site) => [{ id: await newest(site, "/task") }],
  "/alerts/:id": async (site) => [{ id: await newest(site, "/alert") }],
  "/sources/:app/:id": () => ofAcme("github"),
  "/agents/:app/:name": () => ["hub", "absent"].map((name) => ({ app: "acme", name })),
  "/policies/:name": () => [{ name: "patient" }, { name: "standard" }],
  "/applications/:id": () => [{ id: "acme" }, { id: "initech" }],
  "/event-types/:name": () => [{ name: "invoice.paid" }],
  "/portal/endpoints/:id": () => ofAcme("healthy", "rejecting"),
  "/portal/messages/:id": async (site) => [
    { id: "invoice-17" },
    { id: await newest(site, "/app/acme/msg?event_types=inbound.github") },
  ],
  "/portal/event-types/:name": () => [{ name: "invoice.paid" }],
}

/** Addresses of every pattern. */
export async function examplesOf(
  site: Site,
  patterns: readonly string[],
  values: ExampleValues = EXAMPLES,
): Promise<Example[]> {
  const found = await Promise.all(
    patterns.map(async (pattern) => {
      if (!pattern.includes(":")) return [{ pattern, path: pattern }]
      const known = values[pattern]
      if (known === undefined)
        throw new Error(`the tests know no address of ${pattern}: add one in test/browser/support`)
      return (await known(site)).map((named) => ({ pattern, path: filled(pattern, named) }))
    }),
  )
  return found.flat()
}

/** Visits the pages one after the other and returns the problems of each. `go` does not load the document again. */
export async function walk(
  examples: readonly Example[],
  tab: Tab,
  how: "open" | "go",
  look: (example: Example) => Promise<readonly string[]> = async () => [],
): Promise<{ [page: string]: readonly string[] }> {
  const wrong: { [page: string]: readonly string[] } = {}
  for (const example of examples) {
    const found: string[] = []
    try {
      await tab[how](example.path)
      found.push(...(await look(example)))
    } catch (error) {
      found.push((error as Error).message)
    }
    found.push(...tab.problems)
    if (found.length > 0) wrong[`${example.pattern} at ${example.path}`] = found
    tab.forget()
  }
  return wrong
}

/** The first address of each pattern. */
export function oneOfEach(examples: readonly Example[]): Example[] {
  return examples.filter(({ pattern }, i) => examples.findIndex((one) => one.pattern === pattern) === i)
}

function filled(pattern: string, values: { readonly [parameter: string]: string }): string {
  return pattern.replaceAll(/:(\w+)/g, (_, name) => encodeURIComponent(values[name]!))
}

function ofAcme(...ids: readonly string[]): Values {
  return ids.map((id) => ({ app: "acme", id }))
}

async function newest(site: Site, path: string): Promise<string> {
  const { data } = await site.call("GET", path)
  const [row] = data as readonly Row[]
  if (row === undefined) throw new Error(`${path} lists nothing`)
  return row.id
}
