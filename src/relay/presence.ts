/**
 * Who is connected, in the store: an entry for each agent, written when it comes and goes, and one lease for each process that has
 * connections. An agent is connected while its process's lease is alive, so a killed process needs no cleaning up.
 */
import type { Clock } from "../core/clock.ts"
import { readAndSave } from "../resources/optimistic.ts"
import type { Entry, EntryKind, Store } from "../store/store.ts"
import { AGENT_KIND, type AgentRecord, agentRecordOf, entryNameOf, neverConnected } from "./agent-record.ts"

/** No key can name this tenant. */
const ORG = "posthorn:relay"
const LEASE_KIND = "lease"
export const LEASE_MS = 60_000

export interface AgentOwner {
  readonly orgId: string
  readonly appId: string
}

/** A process that has connections, as it last told. */
export interface Holder {
  readonly until: number
  readonly seenAt: number
  /** Events in flight by the entry names of agents that have any. */
  readonly inFlight: { readonly [agent: string]: number }
}

export class Presence {
  readonly #store: Pick<Store, "getEntry" | "saveEntryIfUnchanged" | "deleteEntry">
  readonly #clock: Clock
  /** This process. */
  readonly holder: string

  constructor(
    store: Pick<Store, "getEntry" | "saveEntryIfUnchanged" | "deleteEntry">,
    clock: Clock,
    holder: string,
  ) {
    this.#store = store
    this.#clock = clock
    this.holder = holder
  }

  /** Counts a new connection, and returns its number. */
  async connected(owner: AgentOwner, agent: string, version: string): Promise<number> {
    const record = await this.#change(owner, agent, ({ epoch }) => ({
      name: agent,
      epoch: epoch + 1,
      holder: this.holder,
      version,
      connectedAt: this.#clock.now(),
      disconnectedAt: null,
    }))
    return record.epoch
  }

  /** Nothing changes if a newer connection was counted since. */
  async disconnected(owner: AgentOwner, agent: string, epoch: number): Promise<void> {
    await this.#change(owner, agent, (record) =>
      record.epoch === epoch ? { ...record, disconnectedAt: this.#clock.now() } : record,
    )
  }

  /** An endpoint names the agent: it is listed from now on. */
  async expected(owner: AgentOwner, agent: string): Promise<void> {
    await this.#change(owner, agent, (record) => record)
  }

  async epochOf({ orgId, appId }: AgentOwner, agent: string): Promise<number> {
    const entry = await this.#store.getEntry(AGENT_KIND, orgId, entryNameOf(appId, agent), this.#clock.now())
    return entry === null ? 0 : agentRecordOf(entry).epoch
  }

  async renew(inFlight: Holder["inFlight"]): Promise<void> {
    const now = this.#clock.now()
    const body: Holder = { until: now + LEASE_MS, seenAt: now, inFlight }
    await this.#save(LEASE_KIND, ORG, null, leaseName(this.holder), body, now + LEASE_MS)
  }

  async endLease(): Promise<void> {
    await this.#store.deleteEntry(LEASE_KIND, ORG, leaseName(this.holder))
  }

  #change(
    { orgId, appId }: AgentOwner,
    agent: string,
    change: (record: AgentRecord) => AgentRecord,
  ): Promise<AgentRecord> {
    return readAndSave(async () => {
      const name = entryNameOf(appId, agent)
      const entry = await this.#store.getEntry(AGENT_KIND, orgId, name, this.#clock.now())
      const before = entry === null ? null : agentRecordOf(entry)
      const after = change(before ?? neverConnected(agent))
      if (after !== before)
        await this.#write(entry, { kind: AGENT_KIND, orgId, owner: appId, name }, after, null)
      return after
    })
  }

  #save(
    kind: EntryKind,
    orgId: string,
    owner: string | null,
    name: string,
    body: object,
    expiresAt: number | null,
  ): Promise<void> {
    return readAndSave(async () => {
      const entry = await this.#store.getEntry(kind, orgId, name, this.#clock.now())
      await this.#write(entry, { kind, orgId, owner, name }, body, expiresAt)
    })
  }

  #write(
    before: Entry | null,
    key: Pick<Entry, "kind" | "orgId" | "name"> & { readonly owner: string | null },
    body: object,
    expiresAt: number | null,
  ): Promise<void> {
    const now = this.#clock.now()
    return this.#store.saveEntryIfUnchanged({
      ...key,
      body: JSON.stringify(body),
      version: (before?.version ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      expiresAt,
    })
  }
}

function leaseName(holder: string): string {
  return `agents.${holder}`
}

/** Null: the process is gone, or has no connections. */
export async function readHolder(
  store: Pick<Store, "getEntry">,
  holder: string,
  now: number,
): Promise<Holder | null> {
  const entry = await store.getEntry(LEASE_KIND, ORG, leaseName(holder), now)
  return entry === null ? null : JSON.parse(entry.body)
}
