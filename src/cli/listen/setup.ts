/** Makes what `posthorn listen` needs on the server: an application, an endpoint, a key, and last the source, which lets webhooks in. */
import { randomBytes } from "node:crypto"
import type { ApplicationOut } from "../../api/schemas/application.ts"
import type { EndpointOut } from "../../api/schemas/endpoint.ts"
import type { KeyOut } from "../../api/schemas/key.ts"
import type { SourceOut } from "../../api/schemas/source.ts"
import { type Api, ApiFailure, path } from "../api.ts"
import { secretOf } from "../commands/source-fields.ts"
import { readList } from "../lists.ts"
import type { Listening } from "./display.ts"
import { LISTEN_POLICY, type ListenFlags, type Types, typesFor } from "./listen-flags.ts"
import type { Temporary, TemporaryThings } from "./temporary.ts"

export const LISTEN_NAME = /^listen-[0-9a-f]{12}$/
/** Of the agent's key: what a killed run left behind is of no use after that. */
export const LIFE_MS = 86_400_000
const DESCRIPTION = "posthorn listen"

export interface Setup extends Omit<Listening, "forward"> {
  readonly name: string
  /** Of the agent. */
  readonly token: string
  readonly expiresAt: Date
}

export async function setUp(
  api: Api,
  things: TemporaryThings,
  flags: ListenFlags,
  signal: AbortSignal,
): Promise<Setup> {
  const name = `listen-${randomBytes(6).toString("hex")}`
  const types = typesFor(name, flags)
  const secret = await secretOf(flags)
  const { app = name } = flags
  const get = <T>(route: string, query = {}) => api.send<T>("GET", route, { query, signal })
  const post = <T>(route: string, body: object) => api.send<T>("POST", route, { body, signal })
  /** A temporary application takes with it what is in it. */
  const makeInside = <T>(thing: Temporary, request: () => Promise<T>) =>
    flags.app === undefined ? request() : things.make(thing, request)
  try {
    // Before anything is made: is it a server, and the key one of the whole organization?
    await get("/key", { limit: 1 })
    if (flags.app === undefined)
      await things.make({ route: path`/app/${name}`, command: `apps delete ${name}` }, () =>
        post("/app", { name, uid: name }),
      )
    const { id: appId } = await get<ApplicationOut>(path`/app/${app}`)
    const others = await othersWith(api, app, types)
    const endpoint = await makeInside(
      { route: path`/app/${app}/endpoint/${name}`, command: `endpoints delete ${app} ${name}` },
      () => post<EndpointOut>(path`/app/${app}/endpoint`, endpointFor(name, types)),
    )
    const expiresAt = new Date(Date.now() + LIFE_MS)
    const agent = { name, scope: "agent", appId: app, endpointIds: [endpoint.id], expiresAt }
    const key = await post<KeyOut & { readonly token: string }>("/key", agent)
    things.add({ route: path`/key/${key.id}`, command: `keys revoke ${key.id}` })
    const source = await makeInside(
      { route: path`/app/${app}/source/${name}`, command: `sources delete ${app} ${name}` },
      () => post<SourceOut>(path`/app/${app}/source`, sourceFor(name, types, secret, flags)),
    )
    const ids = { appId, sourceId: source.id, endpointId: endpoint.id }
    return { name, token: key.token, expiresAt, ...ids, url: source.url!, others }
  } catch (error) {
    throw hinted(error)
  }
}

function endpointFor(name: string, { eventTypes }: Types): object {
  const settings = { eventTypes, retry: LISTEN_POLICY, ordered: false }
  return { uid: name, url: `relay://${name}`, description: DESCRIPTION, ...settings }
}

function sourceFor(
  name: string,
  { eventType }: Types,
  secret: string | undefined,
  flags: ListenFlags,
): object {
  return {
    name,
    description: DESCRIPTION,
    verification: flags.verify ?? "none",
    ...(secret === undefined ? {} : { secret }),
    eventType,
    // Who presses "redeliver" at the provider wants to see it again.
    deduplication: "off",
  }
}

/** How many other endpoints get the webhooks, too. */
async function othersWith(api: Api, app: string, { eventTypes }: Types): Promise<number> {
  const { data } = await readList<EndpointOut>(api, path`/app/${app}/endpoint`, {}, { all: true })
  return data.filter(({ filterTypes, channels }) => {
    const isWanted = (type: string) => eventTypes === null || eventTypes.includes(type)
    return channels === null && (filterTypes === null || filterTypes.some(isWanted))
  }).length
}

function hinted(error: unknown): unknown {
  if (!(error instanceof ApiFailure) || error.status !== 403) return error
  const advice = 'listen needs an admin\'s key, which "posthorn keys create NAME --scope admin" makes'
  return new ApiFailure(403, `${error.message}; ${advice}`)
}
