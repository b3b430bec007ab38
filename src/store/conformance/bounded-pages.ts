/** Pages of the dashboard whose filters find nothing, or little that is old, among many deliveries. */
import type { AttemptFilter, DeliveryFilter, MessageFilter, Page, Store } from "../store.ts"

/** The rows that both stores' tests write: `count` messages, a second apart, with a delivery and an attempt each. */
export const SCALE = { most: 100, startedAt: 1_900_000_000_000, endpoints: 10 }

/** To see whether few deliveries wait, to find the end of the search, to search; and some steps to find a time. */
export const MOST_READ = 3 * SCALE.most + 150

const OLD = { since: SCALE.startedAt + 1_000_000, until: SCALE.startedAt + 1_100_000 }
const NONE = { channel: "nobody" }
const page: Page = { limit: 10, order: "descending", from: null, back: false }

type Searching = Pick<
  Store,
  | "boundDeliveries"
  | "boundMessages"
  | "boundAttempts"
  | "listDeliveries"
  | "listMessages"
  | "listAttempts"
  | "countDeliveries"
  | "countByStatus"
  | "groupDead"
  | "listLanes"
>
/** SQLite's operations answer at once, PostgreSQL's later. */
export type Callable = { readonly [N in keyof Searching]: (...args: Parameters<Searching[N]>) => unknown }
type Read = (store: Callable, isBounded: boolean) => Promise<unknown>

const deliveries =
  (filter: DeliveryFilter, then: "listDeliveries" | "countDeliveries" = "listDeliveries"): Read =>
  async (store, isBounded) => {
    const bound = isBounded ? await store.boundDeliveries(filter, page, SCALE.most) : { filter }
    return store[then]((bound as { filter: DeliveryFilter }).filter, page)
  }
const messages =
  (filter: Omit<MessageFilter, "appId">): Read =>
  async (store, isBounded) => {
    const of = { appId: "app_1", ...filter }
    const bound = isBounded ? await store.boundMessages(of, page, SCALE.most) : { filter: of }
    return store.listMessages((bound as { filter: MessageFilter }).filter, page, false)
  }
const attempts =
  (filter: AttemptFilter): Read =>
  async (store, isBounded) => {
    const bound = isBounded ? await store.boundAttempts(filter, page, SCALE.most) : { filter }
    return store.listAttempts((bound as { filter: AttemptFilter }).filter, page)
  }
const groups: Read = async (store, isBounded) => {
  const filter = { status: "dead", undiscarded: true } as const
  const bound = isBounded ? await store.boundDeliveries(filter, page, SCALE.most) : { filter }
  return store.groupDead((bound as { filter: DeliveryFilter }).filter, 10)
}
const counts: Read = async (store, isBounded) => {
  const bound = isBounded ? await store.boundDeliveries({}, page, SCALE.most) : { filter: {} }
  return store.countByStatus((bound as { filter: DeliveryFilter }).filter)
}

const dead = { status: "dead", undiscarded: true } as const
export const BOUNDED_PAGES: { readonly [what: string]: Read } = {
  "deliveries of a channel": deliveries(NONE),
  "deliveries of an event type": deliveries({ eventTypes: ["nothing"] }),
  "deliveries of an application without any": deliveries({ appId: "app_9" }),
  "deliveries by the class of a response": deliveries({ responseClass: 100 }),
  "deliveries of an old time": deliveries({ ...OLD, ...NONE }),
  "deliveries of an endpoint with a channel": deliveries({ endpointId: "ep_1", ...NONE }),
  "deliveries that fail": deliveries({ status: "failed", ...NONE }),
  "deliveries of an endpoint that fail": deliveries({ status: "failed", endpointId: "ep_1", ...NONE }),
  "dead letters of a reason": deliveries({ ...dead, deadReason: "gone" }),
  "dead letters of an endpoint and a reason": deliveries({ ...dead, endpointId: "ep_1", deadReason: "gone" }),
  "a count of dead letters": deliveries(dead, "countDeliveries"),
  "groups of dead letters": groups,
  "a count by status": counts,
  "messages with a tag": messages({ tag: "nobody" }),
  "messages of an old time": messages({ ...OLD, tag: "nobody" }),
  "attempts of an endpoint by class": attempts({ endpointId: "ep_1", responseClass: 100 }),
  "attempts of an endpoint of an old time": attempts({ endpointId: "ep_1", ...OLD, responseClass: 100 }),
  "attempts of an application by class": attempts({ appId: "app_1", responseClass: 100 }),
}
