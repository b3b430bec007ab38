/** A store with one application and one endpoint, and helpers that send, fetch and end deliveries. */
import { cancel, revive } from "../../core/operate.ts"
import { PRESETS } from "../../core/presets.ts"
import type { Change } from "../../core/settle.ts"
import type { Accepted, Amendment, Delivery, Endpoint, NewMessage, Store } from "../store.ts"
import { lanesOf } from "./lanes.ts"
import { laneFetch, NOW, sample, settlement } from "./samples.ts"

export interface StoreUnderTest {
  readonly store: Store
  /** Ends the store as a crash would and opens it again. */
  reopen(): Promise<Store>
  /** A second program on the same data. */
  beside(): Promise<Store>
  /** How late retention may remove a finished delivery; by default 0. */
  readonly retentionGrainMs?: number
}

export type Stage = Awaited<ReturnType<ReturnType<typeof stageOn>>>
export type SetUp = (more?: Partial<Endpoint>) => Promise<Stage>

export function stageOn(open: () => Promise<StoreUnderTest>) {
  return async (more: Partial<Endpoint> = {}) => {
    const under = await open()
    const { store } = under
    const application = sample.application()
    await store.createApplication(application)
    const endpoint = sample.endpoint(application.id, more)
    await store.createEndpoint(endpoint)
    const send = async (message: Partial<NewMessage> = {}): Promise<Accepted> =>
      (await store.acceptMany([sample.message(application.id, message)]))[0]!
    const lanes = lanesOf(store)
    const fetch = (token: number, limit = 10, now = NOW, retryShare = 0) =>
      lanes.fetch({ ...laneFetch(endpoint.id, token, { limit, retryShare }), appId: application.id }, now)
    let lastToken = 100
    /** Settles all due deliveries with this status, and returns them. */
    const attemptAll = async (status: number | null, now = NOW, of = endpoint): Promise<Delivery[]> => {
      const token = ++lastToken
      const lane = { ...laneFetch(of.id, token, { limit: 100 }), appId: of.appId }
      const { deliveries } = await lanes.fetch(lane, now)
      await lanes.settle(deliveries.map((one) => settlement(of.id, token, one, status, now)))
      return Promise.all(deliveries.map(async ({ id }) => (await store.getDelivery(of.orgId, id))!))
    }
    /** Creates dead letters. */
    const killOff = async (count: number): Promise<Delivery[]> => {
      for (let i = 0; i < count; i++) await send({ maxAttempts: 1 })
      return attemptAll(500)
    }
    return { ...under, application, endpoint, lanes, send, fetch, attemptAll, killOff }
  }
}

export function amendment({ seq, status, attemptCount }: Delivery, change: Amendment["change"]): Amendment {
  return { seq, expectedStatus: status, expectedAttemptCount: attemptCount, change }
}

export function revived(delivery: Delivery, now = NOW): Amendment {
  return amendment(delivery, revive(delivery, now))
}

export function calledOff(delivery: Delivery, more: Partial<Change> = {}): Amendment {
  return amendment(delivery, { ...cancel(delivery, PRESETS.gateway, NOW), ...more })
}
