/** The settings of alert rules: what the configuration, the API and the command line change. */
import type { Clock } from "../core/clock.ts"
import { invalid } from "../core/errors.ts"
import { requireObject } from "../core/input.ts"
import type { Logger } from "../observe/log.ts"
import { readAndSave } from "../resources/optimistic.ts"
import { type WholeListing, wholeListing } from "../resources/paging.ts"
import type { AlertStore } from "./alert-store.ts"
import type { Severity } from "./notification.ts"
import type { Notifier } from "./notifier.ts"
import {
  type AlertRuleInput,
  definitionOf,
  parseRule,
  RULE_IDS,
  type RuleId,
  type RuleSettings,
  requireRule,
} from "./rules.ts"

export interface AlertRule {
  readonly id: RuleId
  readonly about: string
  readonly enabled: boolean
  readonly severity: Severity
  /** Null: all channels. */
  readonly channels: readonly string[] | null
  readonly thresholds: { readonly [name: string]: number }
  /** False: all its settings are the defaults. */
  readonly isChanged: boolean
}

export interface AlertRulesParts {
  readonly alertStore: AlertStore
  readonly notifier: Notifier
  readonly clock: Clock
  readonly logger: Logger
}

export class AlertRules {
  readonly #parts: AlertRulesParts

  constructor(parts: AlertRulesParts) {
    this.#parts = parts
  }

  list(): WholeListing<AlertRule> {
    return wholeListing(this.#all())
  }

  async #all(): Promise<AlertRule[]> {
    const rules = await this.#parts.alertStore.readRules()
    return RULE_IDS.map((id) => show(id, rules[id]))
  }

  async get(id: string): Promise<AlertRule> {
    const known = requireRule(id)
    return show(known, await this.#parts.alertStore.readRule(known))
  }

  /** Replaces all its settings; fields that are left out have their default. */
  async put(id: string, input: AlertRuleInput): Promise<AlertRule> {
    const known = requireRule(id)
    const settings = parseRule(known, input, "")
    const problem = await this.#channelProblem(settings)
    if (problem !== null) throw invalid("channels", problem)
    return this.#save(known, settings)
  }

  /**
   * @internal Validates rules by id. The result writes them. A channel that they name may have been deleted since: that is a warning,
   * and no reason to refuse to start.
   */
  prepare(rules: { readonly [id: string]: unknown }, at: string): () => Promise<void> {
    requireObject(rules, at)
    const parsed = Object.entries(rules).map(([id, input]) => {
      const known = requireRule(id, `${at}.${id}`)
      return [known, parseRule(known, input, `${at}.${id}`)] as const
    })
    return async () => {
      for (const [id, settings] of parsed) {
        const problem = await this.#channelProblem(settings)
        if (problem !== null)
          this.#parts.logger.warn(
            { rule: id },
            `${at}.${id}.channels ${problem}. Its notifications skip that channel until it exists`,
          )
        await this.#save(id, settings)
      }
    }
  }

  /** All its settings become the defaults. */
  async reset(id: string): Promise<AlertRule> {
    const known = requireRule(id)
    await this.#parts.alertStore.resetRule(known)
    return this.get(known)
  }

  async #save(id: RuleId, settings: RuleSettings): Promise<AlertRule> {
    const { alertStore } = this.#parts
    return readAndSave(async () => {
      const before = await alertStore.readRule(id)
      if (before.entry === null || JSON.stringify(before.value) !== JSON.stringify(settings))
        await alertStore.saveRule(id, settings, before)
      return show(id, { value: settings, entry: before.entry ?? true })
    })
  }

  /** Null: all its channels exist. */
  async #channelProblem({ channels }: RuleSettings): Promise<string | null> {
    if (channels === null) return null
    const known = new Set((await this.#parts.notifier.channels()).map(({ name }) => name))
    const unknown = channels.find((name) => !known.has(name))
    if (unknown === undefined) return null
    const hint = known.size === 0 ? "there are no channels yet" : `the channels are ${[...known].join(", ")}`
    return `must name channels that exist, and "${unknown}" does not; ${hint}`
  }
}

function show(
  id: RuleId,
  { value, entry }: { readonly value: RuleSettings; readonly entry: unknown },
): AlertRule {
  return { id, about: definitionOf(id).about, ...value, isChanged: entry !== null }
}
