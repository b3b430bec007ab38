/**
 * Every operation with requests made from its schema, sound and spoiled: never a fault of ours, never an answer that the OpenAPI
 * document does not describe, and what was let in can be read again. A failure prints its request; POSTHORN_FUZZ_SEED makes other
 * requests, POSTHORN_FUZZ_RUNS more of them.
 */
import fc from "fast-check"
import { expect, onTestFinished, test } from "vitest"
import { IS_LONG, rounds } from "../support/length.ts"
import { Receiver } from "../support/receiver.ts"
import { HINTS } from "./support/hints.ts"
import { isOperators, type Operation, operationsOf } from "./support/operations.ts"
import { type FuzzRequest, requestsTo } from "./support/requests.ts"
import { filled } from "./support/sample.ts"
import { ApiServer } from "./support/server.ts"
import { fillTenant } from "./support/tenant.ts"

const SEED = Number(process.env.POSTHORN_FUZZ_SEED ?? (IS_LONG ? Date.now() % 2 ** 31 : 1861))
const RUNS = Number(process.env.POSTHORN_FUZZ_RUNS ?? rounds(8, 100))
/** Said on purpose: what is not there, and not now. */
const MEANT = [501, 503]
const TIMEOUT = { timeout: 60_000 + RUNS * 10_000 }

async function start() {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  const tenant = await fillTenant(server, receiver, { orgId: "org_fuzz", mark: "fuzz", suffix: "fuzz" })
  const { keys } = server.posthorn.tenant("org_fuzz")
  const { token: portal } = await keys.create({ name: "portal", scope: "application", appId: tenant.appId })
  const { token: reader } = await keys.create({ name: "reader", scope: "read" })
  const references = Object.entries(tenant.ids.references).map(([name, one]) => [name, fc.constant(one)])
  const material = {
    names: [tenant.ids.names, tenant.ids.names, tenant.ids.names, tenant.uids.names],
    hints: { ...HINTS, ...Object.fromEntries(references) },
    keys: [...Array(14).fill(tenant.key), portal, reader],
  }
  return { server, material, key: tenant.key, operations: await operationsOf(server) }
}

async function send(server: ApiServer, { method, path, ...options }: FuzzRequest) {
  const answer = await server.call(method, path, options)
  if (answer.status >= 500 && !MEANT.includes(answer.status))
    throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`)
  return answer
}

/** Operations that write come first, then those that read, then those that delete; in each group the deepest path first. */
function byTurn(a: Operation, b: Operation): number {
  return turn(a) - turn(b) || b.path.length - a.path.length
}

function turn({ method, path }: Operation): number {
  if (method === "DELETE" || /expunge|expire/.test(path)) return 2
  return method === "GET" ? 1 : 0
}

test("the server answers every request as its OpenAPI document describes", TIMEOUT, async () => {
  const { server, material, key, operations } = await start()
  const failures: string[] = []
  const fuzz = async (operation: Operation) => {
    const keys =
      isOperators(operation) && !isDialling(operation) ? [server.key, ...material.keys] : material.keys
    const property = fc.asyncProperty(requestsTo(operation, { ...material, keys }), async (request) => {
      await send(server, request)
    })
    const { failed, counterexample, errorInstance } = await fc.check(property, { seed: SEED, numRuns: RUNS })
    const request = JSON.stringify(counterexample)
    if (failed) failures.push(`seed ${SEED}, ${operation.id}: ${request}\n${errorInstance}`)
  }
  const lists = operations.filter(isList).map((operation) => ({
    path: filled(operation.path, material.names),
    key: isOperators(operation) ? server.key : key,
  }))
  const [kept, taken] = [
    operations.filter((one) => turn(one) < 2),
    operations.filter((one) => turn(one) === 2),
  ]
  for (const operation of kept.sort(byTurn)) await fuzz(operation)
  expect(failures).toEqual([])
  for (const { path, key } of lists) await readAll(server, key, path, [200])
  for (const operation of taken.sort(byTurn)) await fuzz(operation)
  expect(failures).toEqual([])
  for (const { path, key } of lists) await readAll(server, key, path, [200, 404])
  expect(await server.call("GET", "/health", { key: null })).toMatchObject({ status: 200 })
})

/** A test of a channel connects to a host that another request made up. */
const isDialling = ({ id }: Operation) => id === "v1.alert-channel.test"

function isList({ method, parameters }: Operation): boolean {
  return method === "GET" && parameters.some(({ name }) => name === "iterator")
}

/** Page after page, to the end. */
async function readAll(server: ApiServer, key: string, path: string, allowed: readonly number[]) {
  for (let iterator: string | null = null, done = false; !done; ) {
    const query = new URLSearchParams({ limit: "250", ...(iterator === null ? {} : { iterator }) })
    const answer = await send(server, { method: "GET", path: `${path}?${query}`, key })
    expect(allowed, `${path}: ${answer.text}`).toContain(answer.status)
    ;({ iterator, done = true } = answer.body)
  }
}
