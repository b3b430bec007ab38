import { getRandomValues } from "node:crypto"
import { expect, onTestFinished, test, vi } from "vitest"
import { createIds } from "../../core/ids.ts"
import { AT, laneFetch, newest, ORG, sample } from "../conformance.ts"
import type { DeliveryFilter, RollupFilter, Task } from "../store.ts"
import { Connection } from "./connection.ts"
import { Context } from "./context.ts"
import { migrate } from "./migrate.ts"
import { OPERATIONS, type OperationName } from "./operations.ts"

const NOW = 1_900_000_000_000
const next = { ...newest(50), from: 1000 }
/** A sort, or a scan of a whole table; a list of values does not count. */
const WHOLE = /TEMP B-TREE|SCAN (?!json_each)/
const named = { limit: 50, order: "ascending", from: "x", back: false } as const

type Arguments<N extends OperationName> =
  Parameters<(typeof OPERATIONS)[N]> extends [Context, ...infer A] ? A : never

/** A store on this thread that returns the plans of an operation's statements. */
function open() {
  const connection = new Connection(":memory:")
  onTestFinished(() => connection.close())
  migrate(connection)
  const ids = createIds((into) => getRandomValues(into))
  const context = new Context(connection, ids)
  const run = <N extends OperationName>(name: N, ...args: Arguments<N>) => {
    const value = (OPERATIONS[name] as (context: Context, ...args: unknown[]) => unknown)(context, ...args)
    context.flush()
    return value
  }
  const explain = (text: string): string => {
    const steps = connection.db.prepare(`EXPLAIN QUERY PLAN ${text}`).all()
    return steps.map(({ detail }) => detail).join("\n")
  }
  const plan = <N extends OperationName>(name: N, ...args: Arguments<N>): string[] => {
    const spies = [vi.spyOn(connection, "sql"), vi.spyOn(connection, "once")]
    run(name, ...args)
    const texts = spies.flatMap(({ mock }) => mock.calls.map(([text]) => text))
    for (const spy of spies) spy.mockRestore()
    return texts.map(explain)
  }
  return { connection, run, plan, explain }
}

/** An application with an endpoint of each kind, and a message that waits for both. */
function fill({ run }: ReturnType<typeof open>) {
  const application = sample.application()
  const endpoints = [false, true].map((ordered) => sample.endpoint(application.id, { ordered }))
  run("createApplication", application)
  for (const endpoint of endpoints) run("createEndpoint", endpoint)
  run("accept", [sample.message(application.id)])
  return endpoints
}

test("a lane's deliveries are found by indexes, without a sort", () => {
  const store = open()
  const plans = fill(store).flatMap(({ id }) => {
    const { want, ...lane } = laneFetch(id, 1)
    return store.plan("fetch", { ...lane, ...want, knownVersion: null }, 0, AT)
  })
  plans.push(...store.plan("scanLanes", null, 10))
  const text = plans.join("\n")
  expect(text).toContain(
    "SEARCH w USING INDEX deliveries_live (handed=? AND webhook_id=? AND rank=? AND <expr><?)",
  )
  expect(text).toContain("SEARCH webhook_deliveries USING INDEX deliveries_line (webhook_id=?)")
  expect(text).not.toMatch(/TEMP B-TREE|SCAN (?!found)/)
})

test("waiting deliveries of an endpoint that becomes ordered are found without reading finished ones", () => {
  const store = open()
  const [endpoint] = fill(store)
  const [text] = store
    .plan("updateEndpoint", endpoint!.id, { ordered: true }, NOW)
    .filter((one) => one.includes("webhook_deliveries"))
  expect(text).toContain("SEARCH webhook_deliveries USING INDEX deliveries_live (handed=? AND webhook_id=?)")
})

test("a survey reads waiting rows and dead letters by their indexes, and no finished rows", () => {
  const plans = open().plan("survey", NOW).join("\n")
  for (const index of ["deliveries_live", "deliveries_dead_reason", "endpoints_app"])
    expect(plans).toContain(`INDEX ${index}`)
  expect(plans).not.toMatch(/SCAN (d|webhook_deliveries|endpoints)$/m)
  // The counts by endpoint come from the same scan as all others.
  expect(plans.match(/SCAN d USING INDEX deliveries_live/g)).toHaveLength(1)
})

test("retention finds its rows by an index of its own", () => {
  const plans = open().plan("purge", NOW, 500).join("\n")
  const ofMessages = ["messages_purge", "messages_payload_until"]
  for (const index of ["deliveries_purge", ...ofMessages, "entries_expiry", "attempt_rollups_hour"])
    expect(plans).toContain(`INDEX ${index}`)
  expect(plans).not.toContain("SCAN")
})

test.each<[string, DeliveryFilter, string]>([
  ["of a tenant", { orgId: "o" }, "INTEGER PRIMARY KEY (rowid<?)"],
  [
    "of an endpoint",
    { endpointId: "e", orgId: "o" },
    "INDEX deliveries_endpoint (ANY(<expr>) AND webhook_id=? AND seq<?)",
  ],
  [
    "that wait for an endpoint",
    { endpointId: "e", live: true },
    "INDEX deliveries_endpoint (ANY(<expr>) AND webhook_id=? AND seq<?)",
  ],
  ["of a message", { messageId: "m", orgId: "o" }, "INDEX deliveries_message (message_id=? AND rowid<?)"],
  [
    "that are dead",
    { appId: "a", status: "dead", undiscarded: true },
    "INDEX deliveries_dead (app_id=? AND seq<?)",
  ],
  [
    "that are dead, of a tenant",
    { orgId: "o", status: "dead", undiscarded: true },
    "INDEX deliveries_dead_seq (seq<?)",
  ],
  ["that were given up", { appId: "a", calledOff: false }, "INDEX deliveries_dead (app_id=? AND seq<?)"],
  [
    "narrowed by all that their messages say",
    { endpointId: "e", eventTypes: ["a"], channel: "c", tag: "t", responseClass: 500, since: 1 },
    "INDEX deliveries_endpoint (ANY(<expr>) AND webhook_id=? AND seq<?)",
  ],
])("deliveries %s are read in order, each once", (_what, filter, index) => {
  const [plan] = open().plan("listDeliveries", filter, next)
  expect(plan).toContain(`SEARCH d USING ${index}`)
  expect(plan).not.toMatch(WHOLE)
})

test.each<[string, DeliveryFilter]>([
  ["an endpoint", { endpointId: "e" }],
  ["an application", { appId: "a" }],
])("waiting deliveries of %s are found by lanes, without reading finished ones", (_whom, of) => {
  const { run, plan } = open()
  const filter = { ...of, live: true }
  const { id } = run("createTask", sample.task({ action: "cancel", filter })) as Task
  for (const text of [...plan("countDeliveries", filter), plan("readTask", id, 200).at(-1)]) {
    expect(text).toContain("SEARCH d USING INDEX deliveries_live (handed=? AND webhook_id=?)")
    expect(text).not.toMatch(WHOLE)
  }
})

test.each<[string, DeliveryFilter, string]>([
  [
    "an endpoint",
    { endpointId: "e" },
    "INDEX deliveries_endpoint (ANY(<expr>) AND webhook_id=? AND seq>? AND seq<?)",
  ],
  ["an application", { appId: "a" }, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
  ["a tenant", { orgId: "o" }, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
])("waiting deliveries of %s are sent now page by page, without a sort", (_whom, of, index) => {
  const { run, plan } = open()
  const filter = { ...of, live: true, startableBy: NOW, datesBy: NOW, endpointSends: true }
  const { id } = run("createTask", sample.task({ action: "send-now", filter })) as Task
  const text = plan("readTask", id, 200).at(-1)
  expect(text).toContain(`SEARCH d USING ${index}`)
  expect(text).not.toMatch(WHOLE)
})

test("the attempts of an application are read endpoint by endpoint", () => {
  const store = open()
  const { appId } = fill(store)[0]!
  const plans = store.plan("listAttempts", { appId, statuses: ["failed"] }, next)
  expect(plans).toHaveLength(1 + 2)
  for (const text of plans.slice(1)) expect(text).toContain("INDEX attempts_endpoint")
  expect(plans.join("\n")).not.toMatch(WHOLE)
})

test("dead letters of a tenant are counted and grouped by the index of dead letters", () => {
  const { plan } = open()
  const filter = { orgId: "o", status: "dead", undiscarded: true } as const
  for (const text of [...plan("countDeliveries", filter), ...plan("groupDead", filter, 10)])
    expect(text).toMatch(/^SCAN d USING INDEX deliveries_dead/)
})

test("a task over messages reads only its application's", () => {
  const { run, plan } = open()
  const task = sample.task({ action: "expunge", filter: { appId: "a", tag: "t" } })
  run("createTask", task)
  expect(plan("readTaskMessages", task.id, 200).at(-1)).toContain(
    "INDEX messages_app (app_id=? AND seq>? AND seq<?)",
  )
})

test("every other list reads a range of an index", () => {
  const { plan } = open()
  const plans = {
    applications_org: plan("listApplications", "o", named),
    endpoints_app: plan("listEndpoints", { appId: "a" }, { ...named, back: true }),
    endpoints_relay: plan("listEndpoints", { transport: "relay" }, named),
    endpoints_relay_url: plan("listEndpoints", { appId: "a", url: "relay://hub" }, named),
    entries_org: plan("listEntries", "key", "o", named, NOW),
    entries_owner: plan("listEntries", "key", "o", named, NOW, "app"),
    messages_app: plan("listMessages", { appId: "a", tag: "t", eventTypes: ["e"], since: 1 }, next, false),
    attempts_endpoint: plan("listAttempts", { endpointId: "e", orgId: "o", tag: "t" }, next),
    attempts_delivery: plan("listAttempts", { deliveryId: "d", responseClass: 500 }, next),
    tasks_org: plan("listTasks", "o", next, { status: "finished", types: ["t"] }),
  }
  for (const [index, [text]] of Object.entries(plans)) {
    expect(text).toContain(`INDEX ${index}`)
    expect(text).not.toMatch(WHOLE)
  }
  expect(plan("listRunningTasks", 100)).toEqual(["SCAN tasks USING INDEX tasks_running"])
})

test.each([
  "SELECT * FROM webhook_deliveries WHERE webhook_id = ?",
  "UPDATE webhook_deliveries SET next_retry_at = NULL WHERE status = 'failed' AND webhook_id = ?",
  "SELECT * FROM attempts WHERE webhook_id = ?",
])("an operator's query of an endpoint's rows skips from era to era: %s", (text) => {
  const { explain } = open()
  expect(explain(text)).toMatch(/^SEARCH \w+ USING INDEX \w+_endpoint \(ANY\(<expr>\) AND webhook_id=\?\)$/)
})

test("queries skip from era to era also after an ANALYZE of a nearly empty file", () => {
  const { connection, plan } = open()
  const before = plan("listDeliveries", { endpointId: "e" }, next)
  connection.db.exec("ANALYZE")
  expect(plan("listDeliveries", { endpointId: "e" }, next)).not.toEqual(before)
  migrate(connection)
  expect(plan("listDeliveries", { endpointId: "e" }, next)).toEqual(before)
})

test("one row is found by its name, without its tenant", () => {
  const { plan } = open()
  const found = [
    ...plan("getApplication", "o", "uid"),
    ...plan("getEntry", "key", null, "name", NOW),
    ...plan("getEntry", "key", "o", "name", NOW),
    ...plan("getEntries", "key", ["name"], NOW),
    ...plan("getEndpoints", ["e"]),
    ...plan("getDelivery", "o", "d"),
    ...plan("getMessage", "a", "event"),
    ...plan("getMessages", ["m"], true),
    ...plan("getPayloadSizes", ["m"]),
    ...plan("getAttempt", "m", "atmpt"),
    ...plan("expungeAttempt", "m", "atmpt"),
    ...plan("addIfMissing", [{ messageId: "m", endpointId: "e", manual: true }], AT),
    ...plan("createTask", sample.task({})),
  ]
  for (const text of found) expect(text).not.toMatch(WHOLE)
})

test("what a tenant calls by a name is found by an index of that name", () => {
  const { plan } = open()
  const applications = plan("listApplications", "o", named, { name: "Acme" }).join("\n")
  expect(applications).toContain("INDEX applications_name (org_id=? AND name=? AND id>?)")
  const endpoints = plan("listEndpoints", { orgId: "o", uid: "main" }, named).join("\n")
  expect(endpoints).toContain("INDEX endpoints_org_uid (org_id=? AND uid=? AND id>?)")
  const messages = plan("findMessages", "o", "order-1", 10).join("\n")
  expect(messages).toContain("INDEX messages_event_id (app_id=? AND event_id=?)")
  expect(messages).toContain("INDEX applications_org (org_id=?)")
})

test("a lane is skipped with one probe, and counted by its own rows", () => {
  const store = open()
  fill(store)
  const plans = store.plan("listLanes", { orgId: ORG }, { ...named, from: "" }).join("\n")
  expect(plans).toContain("SEARCH e USING INDEX sqlite_autoindex_endpoints_1 (id>?)")
  expect(plans).toContain(
    "SEARCH webhook_deliveries EXISTS USING INDEX deliveries_live (handed=? AND webhook_id=?)",
  )
  expect(plans).toContain(
    "SEARCH webhook_deliveries USING INDEX deliveries_live (handed=? AND webhook_id=? AND rank=?)",
  )
  // `d` are the rows of one queue, `q` the sums of the queues.
  expect(plans.replaceAll(/SCAN [dq]$/gm, "")).not.toMatch(WHOLE)
})

test.each<[string, RollupFilter, string]>([
  [
    "endpoints",
    { orgId: "o", endpointIds: ["e", "f"] },
    "INDEX sqlite_autoindex_attempt_rollups_1 (webhook_id=? AND hour>? AND hour<?)",
  ],
  [
    "an application",
    { orgId: "o", appId: "a" },
    "INDEX attempt_rollups_app (app_id=? AND hour>? AND hour<?)",
  ],
  ["a tenant", { orgId: "o" }, "INDEX attempt_rollups_app (app_id=? AND hour>? AND hour<?)"],
  [
    "a tenant by age",
    { orgId: "o", maybeOlderThanMs: 1000 },
    "INDEX attempt_rollups_app (app_id=? AND hour>? AND hour<?)",
  ],
])("roll-ups of %s are found by an index, with their hours", (_whom, filter, index) => {
  const [plan] = open().plan("sumRollups", { ...filter, since: 1, until: 2 }, ["eventType", "hour"])
  expect(plan).toContain(`SEARCH r USING ${index}`)
  expect(plan).not.toMatch(/SCAN (?!json_each)/)
})

test("the activity of endpoints is a few probes of indexes for each", () => {
  const store = open()
  fill(store)
  const [plan] = store.plan("getActivity", ["e", "f"], NOW)
  expect(plan).toContain(
    "SEARCH webhook_deliveries USING INDEX deliveries_live (handed=? AND webhook_id=? AND rank=? AND <expr><?)",
  )
  expect(plan).toContain("SEARCH webhook_deliveries USING INDEX deliveries_retrying (webhook_id=?)")
  for (const table of ["n", "r"])
    expect(plan).toMatch(new RegExp(`SEARCH ${table} USING INDEX sqlite_autoindex_attempt_rollups_1`))
  expect(plan).not.toMatch(/TEMP B-TREE|SCAN (?!json_each|q|w|\(?subquery)/)
})

test("endpoints in trouble are found with one probe of the roll-ups for each endpoint", () => {
  const [plan] = open().plan("listEndpoints", { appId: "a", troubledSince: 1 }, named)
  expect(plan).toContain("INDEX endpoints_app")
  expect(plan).toContain("sqlite_autoindex_attempt_rollups_1 (webhook_id=? AND hour>?)")
  expect(plan).not.toMatch(WHOLE)
})

test("messages are counted application by application", () => {
  const [usage] = open().plan("usage", "o", null, {})
  expect(usage).toContain("SEARCH m USING INDEX messages_app (app_id=?)")
  expect(usage).toContain("COVERING INDEX applications_org (org_id=?)")
})
