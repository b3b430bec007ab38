/** Silences, for operators. */
import type { Clock } from "../core/clock.ts"
import { invalid, notFound, PosthornError } from "../core/errors.ts"
import type { Ids } from "../core/ids.ts"
import { refuseUnknown, requireObject, requireText, requireTime } from "../core/input.ts"
import { AGENT_KIND } from "../relay/agent-record.ts"
import { byId, type Listing, listing, type PageInput } from "../resources/paging.ts"
import { date } from "../resources/resource-context.ts"
import type { Store } from "../store/store.ts"
import { type AlertStore, MOST_SILENCES, type StoredSilence } from "./alert-store.ts"
import { cutPage } from "./cut-page.ts"
import { type RuleId, requireRule } from "./rules.ts"

export interface Silence {
  readonly id: string
  readonly rule: RuleId
  /** An endpoint's id, or an agent as `APP_ID.NAME`; null: all subjects of the rule. */
  readonly subject: string | null
  readonly until: Date
  readonly reason: string
  /** The id of the key; null for the library and for tokens. */
  readonly createdBy: string | null
  readonly createdAt: Date
}

export interface SilenceInput {
  rule: string
  /** The subject of an alert: an endpoint's id or, of `agent-absent`, `APP_ID.NAME`. Left out: all subjects of the rule. */
  subject?: string | null
  /** At most a year from now. */
  until: Date | number
  reason?: string
}

export interface SilencesParts {
  readonly store: Store
  readonly alertStore: AlertStore
  readonly clock: Clock
  readonly ids: Ids
}

const LONGEST_MS = 366 * 86_400_000
const LONGEST_REASON = 1000

export class Silences {
  readonly #parts: SilencesParts

  constructor(parts: SilencesParts) {
    this.#parts = parts
  }

  /** `by` is the id of a key. */
  async create(input: SilenceInput, { by = null }: { readonly by?: string | null } = {}): Promise<Silence> {
    const { alertStore, ids, clock } = this.#parts
    requireObject(input, "silence")
    refuseUnknown(input, ["rule", "subject", "until", "reason"], "")
    const rule = requireRule(input.rule)
    const subject =
      input.subject === undefined || input.subject === null
        ? null
        : requireText(input.subject, "subject", 256)
    if (subject !== null && !rule.startsWith("endpoint-") && rule !== "agent-absent")
      throw invalid("subject", `must be left out: ${rule} is about the whole store`)
    const now = clock.now()
    const until = requireTime(input.until, "until")
    if (until <= now || until > now + LONGEST_MS)
      throw invalid("until", "must be in the future, at most a year from now")
    if (subject !== null) await this.#requireSubject(rule, subject)
    const reason = requireText(input.reason ?? "", "reason", LONGEST_REASON)
    if ((await alertStore.readSilences()).length >= MOST_SILENCES)
      throw new PosthornError("limit_reached", `there are ${MOST_SILENCES} silences; delete one first`)
    return show(await alertStore.saveSilence(ids.make("silence", now), { rule, subject, until, reason, by }))
  }

  /** Those that have not ended, the newest first. */
  list(query: PageInput = {}): Listing<Silence> {
    return listing(query, {
      by: { ...byId("silence"), order: "descending" },
      read: async () => {
        const silences = await this.#parts.alertStore.readSilences()
        return async (page) => cutPage(silences, page)
      },
      show,
    })
  }

  async delete(id: string): Promise<void> {
    const { alertStore } = this.#parts
    if (typeof id !== "string" || (await alertStore.readSilence(id)) === null)
      throw notFound("silence", String(id))
    await alertStore.deleteSilence(id)
  }

  /** A silence of any other subject would suppress nothing. */
  async #requireSubject(rule: RuleId, subject: string): Promise<void> {
    if (rule !== "agent-absent") return this.#requireEndpoint(subject)
    const { store, clock } = this.#parts
    if ((await store.getEntries(AGENT_KIND, [subject], clock.now())).length === 0)
      throw invalid("subject", "must be an agent as APP_ID.NAME; the alerts have these")
  }

  async #requireEndpoint(id: string): Promise<void> {
    const [gate] = await this.#parts.store.getGates([id])
    if (gate === undefined || gate.deleted)
      throw invalid(
        "subject",
        "must be the id of an endpoint, not its uid or URL; the alerts and the list of endpoints have the ids",
      )
  }
}

function show({ id, rule, subject, until, reason, by, createdAt }: StoredSilence): Silence {
  return { id, rule, subject, until: date(until), reason, createdBy: by, createdAt: date(createdAt) }
}
