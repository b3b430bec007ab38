/**
 * Who is connected, in the store: an entry for each agent, written when it comes and goes, and one lease for each process that has
 * connections. An agent is connected while its process's lease is alive, so a killed process needs no cleaning up.
 */
import { agentNameOf, agentUrl } from "../core/agent-url.ts"
import type { Clock } from "../core/clock.ts"
import { readAndSave } from "../resources/optimistic.ts"
import type { Entry, EntryKind, Store } from "../store/store.ts"
import { AGENT_KIND, type AgentRecord, agentRecordOf, entryNameOf, neverConnected } from "./agent-record.ts"
import { type AgentStatus, type Holder, NEVER_CONNECTED, statusOf } from "./agent-status.ts"

/** No key can name this tenant. */
const ORG = "posthorn:relay"
const LEASE_KIND = "lease"
export const LEASE_MS = 60_000
/** How long an agent is listed that no endpoint names and that is not connected; and how long a killed process tells when it last saw its agents. */
const KEPT_MS = 30 * 86_400_000
const PAGE = 250
/** An application with this many agents gets no more that no endpoint names: each is an entry of the store for 30 days. */
export const MOST_UNNAMED = 1000

export interface AgentOwner {
  readonly orgId: string
  readonly appId: string
}

/** The connections of this process, by the name of the agent's entry. */
export interface OwnConnections {
  /** Null: the agent is not connected to this process. */
  inFlightOf(entryName: string): number | null
}

type PresenceStore = Pick<
  Store,
  "getEntry" | "getEntries" | "listEntries" | "saveEntryIfUnchanged" | "deleteEntry" | "listEndpoints"
>

/** A connection of this process. */
export interface StandingConnection
  extends Pick<AgentRecord, "epoch" | "version" | "connectedAt" | "endpointIds"> {
  readonly agent: string
}

interface Changed {
  readonly record: AgentRecord
  readonly expiresAt: number | null
}

export class Presence {
  readonly #store: PresenceStore
  readonly #clock: Clock
  /** This process. */
  readonly holder: string
  #own: OwnConnections | null = null

  constructor(store: PresenceStore, clock: Clock, holder: string) {
    this.#store = store
    this.#clock = clock
    this.holder = holder
  }

  /** This process takes connections. */
  attach(own: OwnConnections): void {
    this.#own = own
  }

  /** Counts a new connection, and returns its number. Null: the application has too many agents, and no endpoint names this one. */
  async connected(
    owner: AgentOwner,
    agent: string,
    version: string,
    endpointIds: AgentRecord["endpointIds"] = null,
  ): Promise<number | null> {
    const connectedAt = this.#clock.now()
    const connected = await this.#change(owner, agent, async (before) => {
      if (before === null && (await this.#isCrowded(owner)) && !(await this.#isNamed(owner, agent)))
        return null
      return {
        record: {
          name: agent,
          epoch: (before?.record.epoch ?? 0) + 1,
          holder: this.holder,
          version,
          connectedAt,
          endpointIds,
          disconnectedAt: null,
        },
        expiresAt: null,
      }
    })
    return connected?.record.epoch ?? null
  }

  /** Nothing changes if a newer connection was counted since, or the application is gone. */
  async disconnected(
    owner: AgentOwner,
    agent: string,
    epoch: number,
    endedAt = this.#clock.now(),
  ): Promise<void> {
    await this.#change(owner, agent, async (before) => {
      if (before?.record.epoch !== epoch) return before
      const record = { ...before.record, disconnectedAt: endedAt }
      return { record, expiresAt: (await this.#isNamed(owner, agent)) ? null : endedAt + KEPT_MS }
    })
  }

  /** An endpoint names the agent: it is listed from now on. */
  async expected(owner: AgentOwner, agent: string): Promise<void> {
    await this.#change(owner, agent, async (before) => {
      if (before !== null && before.expiresAt === null) return before
      return { record: before?.record ?? neverConnected(agent), expiresAt: null }
    })
  }

  /** An endpoint does not name the agent any more. If none does, the agent is listed for 30 days after its last connection. */
  async released(owner: AgentOwner, agent: string): Promise<void> {
    const now = this.#clock.now()
    await this.#change(owner, agent, async (before) => {
      if (before === null || (await this.#isNamed(owner, agent))) return before
      const name = entryNameOf(owner.appId, agent)
      const { isConnected, lastSeenAt } = (await this.#show(new Map([[name, before.record]]))).get(name)!
      if (isConnected) return before
      return { ...before, expiresAt: lastSeenAt === null ? now : Math.max(now, lastSeenAt + KEPT_MS) }
    })
  }

  /** The application is deleted. */
  async forget({ orgId, appId }: AgentOwner): Promise<void> {
    const page = { limit: PAGE, order: "ascending", from: null, back: false } as const
    for (;;) {
      const entries = await this.#store.listEntries(AGENT_KIND, orgId, page, this.#clock.now(), appId)
      for (const { name } of entries) await this.#store.deleteEntry(AGENT_KIND, orgId, name)
      if (entries.length < PAGE) return
    }
  }

  /**
   * Confirms that a connection of this process is the newest that stands, and returns its number. The number is a new one if a later
   * connection was counted that has ended: it was cut off before its welcome. Null: another process has a later one. A later one of this
   * process changes nothing: it closes the older one when it is welcomed.
   */
  async confirmed(
    owner: AgentOwner,
    { agent, epoch, version, connectedAt, endpointIds }: StandingConnection,
  ): Promise<number | null> {
    let confirmed: number | null = epoch
    await this.#change(owner, agent, async (before) => {
      confirmed = epoch
      if (before === null || before.record.epoch <= epoch) return before
      const { record } = before
      if (record.disconnectedAt === null && record.holder === this.holder) return before
      confirmed = (await this.#isConnected(record)) ? null : record.epoch + 1
      if (confirmed === null) return before
      const counted = { name: agent, epoch: confirmed, holder: this.holder, version, connectedAt }
      return { record: { ...counted, endpointIds, disconnectedAt: null }, expiresAt: null }
    })
    return confirmed
  }

  /** By the names of agents' entries; two reads, regardless of their number. */
  async statuses(entryNames: readonly string[]): Promise<ReadonlyMap<string, AgentStatus>> {
    const names = [...new Set(entryNames)]
    if (names.length === 0) return new Map()
    const entries = await this.#store.getEntries(AGENT_KIND, names, this.#clock.now())
    const shown = await this.statusesOf(entries)
    return new Map(names.map((name) => [name, shown.get(name) ?? NEVER_CONNECTED]))
  }

  /** Whether the agent that the endpoint names is connected to no process. */
  async isAbsent({ appId, url }: { readonly appId: string; readonly url: string }): Promise<boolean> {
    const name = entryNameOf(appId, agentNameOf(url) ?? "")
    return !(await this.statuses([name])).get(name)!.isConnected
  }

  /** One read, regardless of the number of entries. */
  statusesOf(entries: readonly Entry[]): Promise<Map<string, AgentStatus>> {
    return this.#show(new Map(entries.map((entry) => [entry.name, agentRecordOf(entry)])))
  }

  async renew(inFlight: Holder["inFlight"]): Promise<void> {
    const now = this.#clock.now()
    const body: Holder = { until: now + LEASE_MS, seenAt: now, inFlight }
    await this.#save(LEASE_KIND, ORG, null, leaseName(this.holder), body, now + KEPT_MS)
  }

  async endLease(): Promise<void> {
    await this.#store.deleteEntry(LEASE_KIND, ORG, leaseName(this.holder))
  }

  async #show(records: ReadonlyMap<string, AgentRecord>): Promise<Map<string, AgentStatus>> {
    const now = this.#clock.now()
    const standing = [...records.values()].filter(({ disconnectedAt }) => disconnectedAt === null)
    const ids = new Set(standing.flatMap(({ holder }) => holder ?? []))
    ids.delete(this.holder)
    const leases = [...ids].map(leaseName)
    const found = leases.length === 0 ? [] : await this.#store.getEntries(LEASE_KIND, leases, now)
    const holders = new Map(found.map(({ name, body }): [string, Holder] => [name, JSON.parse(body)]))
    return new Map(
      [...records].map(([name, record]): [string, AgentStatus] => {
        if (record.holder === null) return [name, NEVER_CONNECTED]
        if (record.holder === this.holder)
          return [name, statusOf(record, null, this.#own?.inFlightOf(name) ?? null, now)]
        const holder = holders.get(leaseName(record.holder)) ?? null
        const isAlive = holder !== null && holder.until > now
        return [name, statusOf(record, holder, isAlive ? (holder.inFlight[name] ?? 0) : null, now)]
      }),
    )
  }

  async #isConnected(record: AgentRecord): Promise<boolean> {
    return (await this.#show(new Map([[record.name, record]]))).get(record.name)!.isConnected
  }

  async #isCrowded({ orgId, appId }: AgentOwner): Promise<boolean> {
    const page = { limit: MOST_UNNAMED, order: "ascending", from: null, back: false } as const
    const entries = await this.#store.listEntries(AGENT_KIND, orgId, page, this.#clock.now(), appId)
    return entries.length === MOST_UNNAMED
  }

  async #isNamed({ appId }: AgentOwner, agent: string): Promise<boolean> {
    const page = { limit: 1, order: "ascending", from: null, back: false } as const
    return (await this.#store.listEndpoints({ appId, url: agentUrl(agent) }, page)).length > 0
  }

  #change<C extends Changed | null>(
    { orgId, appId }: AgentOwner,
    agent: string,
    change: (before: Changed | null) => Promise<C>,
  ): Promise<C> {
    return readAndSave(async () => {
      const name = entryNameOf(appId, agent)
      const entry = await this.#store.getEntry(AGENT_KIND, orgId, name, this.#clock.now())
      const before = entry === null ? null : { record: agentRecordOf(entry), expiresAt: entry.expiresAt }
      const after = await change(before)
      if (after !== null && after !== before)
        await this.#write(
          entry,
          { kind: AGENT_KIND, orgId, owner: appId, name },
          after.record,
          after.expiresAt,
        )
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
