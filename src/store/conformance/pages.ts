/** Pages: every list continues from a row in either direction and order. */
import { describe, expect, test } from "vitest"
import type { Page } from "../store.ts"
import { NOW, ORG, sample } from "./samples.ts"
import type { SetUp, Stage } from "./stage.ts"

interface List<C extends string | number> {
  /** Writes five rows. */
  fill(stage: Stage): Promise<void>
  /** Returns the values that order the rows. */
  read(stage: Stage, page: Page<C>): Promise<C[]>
}
type Lists<C extends string | number> = { readonly [name: string]: List<C> }

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)
const seqsOf = (rows: readonly { seq: number }[]) => rows.map(({ seq }) => seq)

async function fourMoreEndpoints({ store, application }: Stage): Promise<void> {
  for (let i = 0; i < 4; i++) await store.createEndpoint(sample.endpoint(application.id))
}

async function fiveDeliveries({ send, attemptAll }: Stage): Promise<void> {
  for (let i = 0; i < 5; i++) await send()
  await attemptAll(200)
}

const BY_NAME: Lists<string> = {
  applications: {
    async fill({ store }) {
      for (let i = 0; i < 4; i++) await store.createApplication(sample.application())
    },
    read: async ({ store }, page) => idsOf(await store.listApplications(ORG, page)),
  },
  endpoints: {
    fill: fourMoreEndpoints,
    read: async ({ store, application }, page) =>
      idsOf(await store.listEndpoints({ appId: application.id }, page)),
  },
  lanes: {
    async fill(stage) {
      // An empty lane does not shorten a page.
      await stage.store.createEndpoint(sample.endpoint(stage.application.id, { eventTypes: ["other"] }))
      await fourMoreEndpoints(stage)
      await stage.send()
    },
    read: async ({ store }, page) => (await store.listLanes({}, page)).map(({ endpointId }) => endpointId),
  },
  entries: {
    async fill({ store }) {
      for (let i = 0; i < 5; i++) await store.saveEntryIfUnchanged(sample.entry())
    },
    read: async ({ store }, page) => (await store.listEntries("key", ORG, page, NOW)).map(({ name }) => name),
  },
}

const BY_SEQ: Lists<number> = {
  messages: {
    fill: fiveDeliveries,
    read: async ({ store, application }, page) =>
      seqsOf(await store.listMessages({ appId: application.id }, page, false)),
  },
  deliveries: {
    fill: fiveDeliveries,
    read: async ({ store }, page) => seqsOf(await store.listDeliveries({}, page)),
  },
  attempts: {
    fill: fiveDeliveries,
    read: async ({ store }, page) => seqsOf(await store.listAttempts({}, page)),
  },
  "attempts of an application": {
    async fill({ store, application, endpoint, send, attemptAll }) {
      const other = sample.endpoint(application.id)
      await store.createEndpoint(other)
      for (const one of [other, endpoint, endpoint, other, endpoint]) {
        await send({ to: one.id })
        await attemptAll(200, NOW, one)
      }
    },
    read: async ({ store, application }, page) =>
      seqsOf(await store.listAttempts({ appId: application.id }, page)),
  },
  tasks: {
    async fill({ store }) {
      for (let i = 0; i < 5; i++) await store.createTask(sample.task({}))
    },
    read: async ({ store }, page) => seqsOf(await store.listTasks(ORG, page)),
  },
}

export function pages(name: string, setUp: SetUp): void {
  describe(`${name}: pages`, () => {
    readBothWays(BY_NAME)
    readBothWays(BY_SEQ)
  })

  function readBothWays<C extends string | number>(lists: Lists<C>): void {
    test.each(
      Object.entries(lists),
    )("%s are read forwards and backwards, in both orders", async (_, list) => {
      const stage = await setUp()
      await list.fill(stage)
      const upwards = await list.read(stage, { limit: 9, order: "ascending", from: null, back: false })
      expect(upwards).toHaveLength(5)
      for (let i = 1; i < 5; i++) expect(upwards[i - 1]! < upwards[i]!).toBe(true)
      for (const [order, rows] of [
        ["ascending", upwards],
        ["descending", [...upwards].reverse()],
      ] as const) {
        const page = (limit: number, from: C | null, back = false) =>
          list.read(stage, { limit, order, from, back })
        expect(await page(9, null)).toEqual(rows)
        expect(await page(2, null)).toEqual(rows.slice(0, 2))
        expect(await page(2, rows[1]!)).toEqual(rows.slice(2, 4))
        expect(await page(2, rows[3]!)).toEqual(rows.slice(4))
        expect(await page(2, rows[4]!)).toEqual([])
        expect(await page(2, rows[4]!, true)).toEqual(rows.slice(2, 4))
        expect(await page(9, rows[2]!, true)).toEqual(rows.slice(0, 2))
        expect(await page(2, rows[0]!, true)).toEqual([])
      }
    })
  }
}
