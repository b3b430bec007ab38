/** A server with a tenant on it that others try to look into, and everything that was seen there that should not have been. */
import { expect, onTestFinished } from "vitest"
import type { KeyInput } from "../../../src/resources/keys.ts"
import { grantOf } from "../../../src/resources/sessions.ts"
import { Receiver } from "../../support/receiver.ts"
import { requestFor } from "./naming.ts"
import { type Operation, operationsOf } from "./operations.ts"
import type { Request } from "./sample.ts"
import { ApiServer } from "./server.ts"
import { type FullTenant, fillTenant, type TenantInput, VISITOR } from "./tenant.ts"

export interface Visit {
  readonly who: string
  readonly key: string | null
  readonly request: Request
  readonly allowed: readonly number[]
  /** Must not be in the answer, unless the request had it. */
  readonly hidden: readonly string[]
}

const FIRST_ORG = "org_first"
/** Of all tenants, or of time: others are counted too, workers renew their leases, and the last hour has other attempts an hour later. */
const CHANGES_BY_ITSELF: readonly string[] = [
  "v1.statistics.endpoint-count",
  "v1.worker.list",
  "v1.endpoint.health",
  "v1.endpoint.list-health",
  "v1.endpoint.list-all-health",
]
/** Lists with the keys and sessions of visitors. */
const VISITED = ["v1.key.list", "v1.session.list"]

export class World {
  readonly server: ApiServer
  readonly operations: readonly Operation[]
  readonly first: FullTenant
  readonly #receiver: Receiver
  readonly #wrong: string[] = []
  #before: unknown

  private constructor(
    server: ApiServer,
    receiver: Receiver,
    operations: readonly Operation[],
    first: FullTenant,
  ) {
    this.server = server
    this.operations = operations
    this.first = first
    this.#receiver = receiver
  }

  static async start(): Promise<World> {
    const receiver = await Receiver.start()
    onTestFinished(() => receiver.close())
    const server = await ApiServer.start()
    const described = await operationsOf(server)
    const heads = described
      .filter(({ method }) => method === "GET")
      .map((one) => ({ ...one, method: "HEAD" }))
    const first = await fillTenant(server, receiver, { orgId: FIRST_ORG, mark: "zanzibar", suffix: "first" })
    const world = new World(server, receiver, [...described, ...heads].sort(gentlestFirst), first)
    world.#before = await world.#everything()
    return world
  }

  fill(input: TenantInput): Promise<FullTenant> {
    return fillTenant(this.server, this.#receiver, input)
  }

  /** Another application in the first tenant, with everything that goes with it. */
  async sibling(): Promise<FullTenant> {
    const sibling = await this.fill({ orgId: FIRST_ORG, mark: "pemba", suffix: "sibling" })
    this.#before = await this.#everything()
    return sibling
  }

  async keyOf(orgId: string, input: Omit<KeyInput, "name">): Promise<{ readonly id: string; token: string }> {
    return this.server.posthorn.tenant(orgId).keys.create({ ...input, name: VISITOR })
  }

  firstKey(input: Omit<KeyInput, "name">): Promise<{ readonly id: string; token: string }> {
    return this.keyOf(FIRST_ORG, input)
  }

  /** The token of a session that was opened with this key. */
  async sessionOf(keyId: string): Promise<{ readonly id: string; token: string }> {
    const { keys, sessions } = this.server.posthorn.tenant(FIRST_ORG)
    return sessions.open(grantOf(await keys.get(keyId)))
  }

  /** The answer, or null where it breaks the contract. */
  async visit({
    who,
    key,
    request,
    allowed,
    hidden,
  }: Visit): Promise<{ status: number; text: string } | null> {
    const { method, path, body } = request
    const where = `${who}: ${method} ${path} ${JSON.stringify(body) ?? ""}`
    try {
      const answer = await this.server.call(method, path, { key, body })
      const { status, text } = answer
      if (!allowed.includes(status))
        this.#wrong.push(`${where} answered ${status}, not ${allowed.join(" or ")}: ${text}`)
      const asked = path + JSON.stringify(body)
      const shown = text + JSON.stringify([...answer.headers])
      for (const mark of hidden.filter((one) => shown.includes(one) && !asked.includes(one)))
        this.#wrong.push(`${where} shows ${mark}: ${text}`)
      return { status, text }
    } catch (error) {
      this.#wrong.push(`${where}: ${(error as Error).message}`)
      return null
    }
  }

  note(wrong: string): void {
    this.#wrong.push(wrong)
  }

  /** Nothing was seen or done that should not have been. */
  async isUntouched(): Promise<void> {
    expect(this.#wrong).toEqual([])
    expect(await this.#everything()).toEqual(this.#before)
  }

  /** All that the first tenant's admin can read, but for the visitors: their keys, and what they make for themselves. */
  async #everything(): Promise<{ readonly [operation: string]: unknown }> {
    const { key, ids } = this.first
    const seen: { [operation: string]: unknown } = {}
    const reading = this.operations.filter(
      ({ id, method }) => method === "GET" && !CHANGES_BY_ITSELF.includes(id),
    )
    for (const operation of reading) {
      const { method, path } = requestFor(operation, [ids], ids)
      const { status, body } = await this.server.call(method, path, { key })
      seen[operation.id] = [status, VISITED.includes(operation.id) ? residents(body.data) : body]
    }
    return seen
  }
}

function residents(keys: readonly { readonly name: string }[]): object[] {
  return keys.filter(({ name }) => name !== VISITOR)
}

/** Operations that read come first, then those that change, then those that delete and put: the deepest path first, deletes before puts. */
function gentlestFirst(a: Operation, b: Operation): number {
  const stage = ({ method }: Operation) =>
    ["GET", "HEAD"].includes(method) ? 0 : ["POST", "PATCH"].includes(method) ? 1 : 2
  const depth = ({ path }: Operation) => path.split("/").length
  return stage(a) - stage(b) || depth(b) - depth(a) || (a.method < b.method ? -1 : 1)
}
