/** All that a store can be asked for, as plain data to compare. */
import type { EntryKind, Page, RollupDimension, Store } from "../../src/store/store.ts"

const PAGE = 1000
const KINDS: readonly EntryKind[] = ["event-type", "key", "answer", "source"]
const GROUPS: readonly RollupDimension[] = ["application", "endpoint", "eventType", "hour", "attemptNumber"]
const byName = { limit: PAGE, order: "ascending", from: null, back: false } as const

/** Of these tenants. */
export async function everything(store: Store, ...orgIds: string[]) {
  const ofTenants = <T>(read: (orgId: string) => Promise<T[]>) => ofEach(orgIds, read)
  const applications = await ofTenants((orgId) => store.listApplications(orgId, byName))
  const appIds = applications.map(({ id }) => id)
  const endpoints = await ofEach(appIds, (appId) => store.listEndpoints({ appId }, byName))
  const messages = await ofEach(appIds, (appId) => all((page) => store.listMessages({ appId }, page, true)))
  const attempts = await all((page) => store.listAttempts({}, page))
  return {
    applications,
    endpoints: byId(endpoints).map((endpoint) => ({
      ...endpoint,
      secrets: hex(endpoint.secrets),
      // PostgreSQL's text cannot hold this character.
      description: endpoint.description.replaceAll("\0", "\ufffd"),
    })),
    policies: await ofTenants((orgId) => store.listPolicies(orgId)),
    entries: await ofTenants((orgId) => ofEach(KINDS, (kind) => store.listEntries(kind, orgId, byName, 0))),
    messages: messages.map((message) => ({ ...message, payload: hex(message.payload) })),
    deliveries: await all((page) => store.listDeliveries({}, page)),
    attempts: attempts.map((attempt) => ({ ...attempt, responseBody: hex(attempt.responseBody) })),
    rollups: await store.sumRollups({}, GROUPS),
    tasks: await ofTenants((orgId) => all((page) => store.listTasks(orgId, page))),
    lanes: byId((await store.scanLanes(null, PAGE)).map((lane) => ({ id: lane.endpointId, ...lane }))),
    counts: await store.countByStatus({}),
  }
}

async function ofEach<K, T>(keys: readonly K[], read: (key: K) => Promise<T[]>): Promise<T[]> {
  return (await Promise.all(keys.map(read))).flat()
}

async function all<T extends { readonly seq: number }>(read: (page: Page) => Promise<T[]>): Promise<T[]> {
  const found: T[] = []
  for (let from: number | null = null; ; from = found.at(-1)!.seq) {
    const rows = await read({ limit: PAGE, order: "descending", from, back: false })
    found.push(...rows)
    if (rows.length < PAGE) return found
  }
}

/** PostgreSQL sorts text as people do, SQLite by the bytes. */
function byId<T extends { readonly id: string }>(rows: readonly T[]): T[] {
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function hex(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString("hex")
}
