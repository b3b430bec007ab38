/** All that a store can be asked for, as plain data to compare. */
import type { Page, Store } from "../../src/store/store.ts"

const PAGE = 1000

export async function everything(store: Store) {
  const applications = await store.listApplications(PAGE, null)
  const ofEach = async <T>(read: (appId: string) => Promise<T[]>) =>
    (await Promise.all(applications.map(({ id }) => read(id)))).flat()
  return {
    applications,
    endpoints: byId(await ofEach((appId) => store.listEndpoints(appId, PAGE, null))).map((endpoint) => ({
      ...endpoint,
      secrets: hex(endpoint.secrets),
      // PostgreSQL's text cannot hold this character.
      description: endpoint.description.replaceAll("\0", "\ufffd"),
    })),
    policies: await store.listPolicies(),
    messages: (await ofEach((appId) => all((page) => store.listMessages({ appId }, page)))).map(
      (message) => ({
        ...message,
        payload: hex(message.payload),
      }),
    ),
    deliveries: await all((page) => store.listDeliveries({}, page)),
    attempts: (await all((page) => store.listAttempts({}, page))).map((attempt) => ({
      ...attempt,
      responseBody: hex(attempt.responseBody),
    })),
    tasks: await all((page) => store.listTasks(null, page)),
    lanes: byId((await store.scanLanes(null, PAGE)).map((lane) => ({ id: lane.endpointId, ...lane }))),
    counts: await store.countByStatus({}),
  }
}

async function all<T extends { readonly seq: number }>(read: (page: Page) => Promise<T[]>): Promise<T[]> {
  const found: T[] = []
  for (let before: number | null = null; ; before = found.at(-1)!.seq) {
    const rows = await read({ limit: PAGE, before })
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
