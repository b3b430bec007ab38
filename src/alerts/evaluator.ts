/**
 * Evaluates the rules on the leader. State and notifications are decided together and saved in one write, by version: of two
 * processes that decide at once, one writes. The notifications are handed over after the write, with stored idempotency keys, so a
 * crash in between neither loses nor repeats them.
 */
import type { Clock } from "../core/clock.ts"
import { describe, hasCode } from "../core/errors.ts"
import type { Ids } from "../core/ids.ts"
import { type History, LONGEST_WINDOW_MS, sumsOfWindow } from "../monitor/history.ts"
import type { MonitorListener } from "../monitor/monitor.ts"
import type { Snapshot } from "../monitor/snapshot.ts"
import type { Logger } from "../observe/log.ts"
import { readAndSave } from "../resources/optimistic.ts"
import { advance, endAll, forget } from "./alert-state.ts"
import type { AlertStore, Read } from "./alert-store.ts"
import type { Board } from "./board.ts"
import {
  countedBy,
  type DeadSource,
  DeathReader,
  deathsDue,
  type NoticeState,
  noticeOf,
  skipTo,
} from "./dead-letter-notice.ts"
import { endingOf, evaluate, isComplete, type StoredRuleId } from "./evaluate.ts"
import type { LocalAlerts, Surroundings } from "./local-alerts.ts"
import type { Notifier } from "./notifier.ts"
import { type ChannelUse, type Outgoing, plan } from "./plan.ts"
import { definitionOf, RULE_IDS, type RuleId } from "./rules.ts"
import { silenceOf } from "./silence.ts"

export interface EvaluatorParts {
  readonly store: DeadSource
  readonly alertStore: AlertStore
  readonly notifier: Notifier
  readonly local: LocalAlerts
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
}

/** A survey of the store that succeeded. */
interface Survey {
  readonly snapshot: Snapshot
  readonly history: History
}

export type FiringCounts = { readonly [rule in RuleId]?: number }

/** Details of alerts change with every evaluation. They alone are written at most this often. */
const REFRESH_MS = 60_000
/** An evaluation takes less. */
const NEW_CHANNEL_MS = 300_000

const STORED_RULES = RULE_IDS.filter((id) => definitionOf(id).kind === "stored") as StoredRuleId[]

export class AlertEvaluator implements MonitorListener {
  readonly #parts: EvaluatorParts
  /** As the last evaluation left them; null in a process that is not the leader. */
  #stored: Board["alerts"] | null = null
  /** Why the last evaluation could not be saved. The next one reports it as a failure of the store. */
  #unsaved: Error | null = null

  constructor(parts: EvaluatorParts) {
    this.#parts = parts
  }

  /**
   * The number of firing alerts, on the leader for each rule. Another process has only alerts about the store in its memory: it may have
   * led until it could not reach the store.
   */
  firing(isLeader: boolean): FiringCounts {
    const { alerts } = this.#parts.local
    if (!isLeader || this.#stored === null) return countFiring(alerts, [])
    return countFiring([...this.#stored, ...alerts], RULE_IDS)
  }

  async snapshot(snapshot: Snapshot, history: History): Promise<void> {
    await this.#evaluate({ snapshot, history }, this.#unsaved)
  }

  async surveyFailed(error: Error): Promise<void> {
    await this.#evaluate(null, error)
  }

  async failed(error: Error, isLeader: boolean): Promise<void> {
    if (isLeader) await this.#parts.local.storeFailed(error)
  }

  stoodDown(): void {
    this.#stored = null
    this.#unsaved = null
    this.#parts.local.stoodDown()
  }

  /** Waits at most `limitMs` for the notifications that are sent directly, and saves which of them did not arrive. */
  async close(limitMs: number): Promise<void> {
    const { local, alertStore, logger } = this.#parts
    await local.close(limitMs)
    if (!local.isUnsaved) return
    try {
      await readAndSave(async () => {
        const read = await alertStore.readBoard()
        await alertStore.saveBoard({ ...read.value, local: local.merge(read.value.local) }, read)
      })
    } catch (error) {
      logger.debug({ err: error }, "The alerts about the store could not be saved")
    }
  }

  /** Alerts about the store and its disk are evaluated in any case, and once. `survey`: null if it failed. */
  async #evaluate(survey: Survey | null, failure: Error | null): Promise<void> {
    const { alertStore, local } = this.#parts
    let surroundings: Surroundings
    try {
      surroundings = await this.#readSurroundings()
      await local.storeRead(surroundings, (await alertStore.readBoard()).value.local, failure)
    } catch (error) {
      await local.storeFailed(error as Error)
      throw error
    }
    try {
      const saved = await readAndSave(() => this.#decide(surroundings, survey))
      local.wasSaved(saved.value.local)
      // The outbox may also have notifications of a predecessor that stopped after its write.
      await this.#handOver(saved)
      this.#stored = saved.value.alerts
      this.#unsaved = null
    } catch (error) {
      this.#unsaved = error as Error
      throw error
    }
  }

  async #readSurroundings(): Promise<Surroundings> {
    const { alertStore, notifier } = this.#parts
    const [rules, settings, silences, channels] = await Promise.all([
      alertStore.readRules(),
      alertStore.readSettings(),
      alertStore.readSilences(),
      notifier.channels(),
    ])
    const values = RULE_IDS.map((id) => [id, rules[id].value])
    return { rules: Object.fromEntries(values), settings: settings.value, silences, channels }
  }

  async #decide(surroundings: Surroundings, survey: Survey | null): Promise<Read<Board>> {
    const { alertStore, clock, local } = this.#parts
    const read = await alertStore.readBoard()
    const now = clock.now()
    const next = survey === null ? read.value : await this.#next(read.value, surroundings, survey, now)
    const board: Board = { ...next, local: local.merge(read.value.local) }
    return isWorthSaving(read, board, now) ? alertStore.saveBoard(board, read) : read
  }

  async #next(
    board: Board,
    surroundings: Surroundings,
    { snapshot, history }: Survey,
    now: number,
  ): Promise<Board> {
    const planned = plan(
      { ...board, alerts: this.#advance(board, surroundings, snapshot, history, now) },
      {
        ...surroundings,
        repeatMs: surroundings.settings.repeatHours * 3_600_000,
        perHour: surroundings.settings.notificationsPerHour,
        now,
        newKey: () => this.#parts.ids.make("alert", now),
        newGroupKey: ({ rule, id }) => `${rule}:${id}`,
      },
    )
    const noticed = await this.#notice(board, planned.book.channels, surroundings, history, now)
    return {
      ...board,
      ...planned.book,
      alerts: forget(planned.book.alerts, now),
      channels: noticed.channels,
      notices: noticed.notices,
      outbox: [...board.outbox, ...planned.outgoing, ...noticed.outgoing],
    }
  }

  #advance(board: Board, { rules }: Surroundings, snapshot: Snapshot, history: History, now: number) {
    const recent = sumsOfWindow(history, LONGEST_WINDOW_MS)
    const firing = (rule: RuleId) =>
      new Set(
        alerts
          .filter((alert) => alert.rule === rule && alert.phase === "firing")
          .map(({ subject }) => subject),
      )
    const facts = { snapshot, recent, now, firing }
    let alerts = board.alerts
    for (const rule of STORED_RULES) {
      if (!rules[rule].enabled) {
        alerts = endAll(alerts, rule, now)
        continue
      }
      alerts = advance(alerts, {
        rule,
        subjects: evaluate(rule, rules[rule], facts),
        isComplete: isComplete(rule, snapshot),
        ending: (subject) => endingOf(rule, subject, snapshot),
        now,
        newId: () => this.#parts.ids.make("alert", now),
      })
    }
    return alerts
  }

  async #notice(
    board: Board,
    uses: Board["channels"],
    { rules, settings, silences, channels: known }: Surroundings,
    { dead }: History,
    now: number,
  ) {
    const { enabled, severity, channels: wanted, thresholds } = rules["dead-letter"]
    const isSilenced = silenceOf(silences, { rule: "dead-letter", subject: "" }, now) !== undefined
    const channels: { [name: string]: ChannelUse } = { ...uses }
    // A channel may have been put after the channels were read.
    const isNew = ([, { since }]: [string, NoticeState]) => now - since < NEW_CHANNEL_MS
    const notices = Object.fromEntries(Object.entries(board.notices).filter(isNew))
    const outgoing: Outgoing[] = []
    const reader = new DeathReader(this.#parts.store)
    for (const { name, deadLetters, isReadable } of known) {
      const stored = board.notices[name]
      if (!isReadable && stored !== undefined) notices[name] = stored
      if (!isReadable) continue
      const before = countedBy(stored, dead, now)
      const isOn = enabled && deadLetters && (wanted === null || wanted.includes(name)) && !isSilenced
      // While notices are off, deaths count as told.
      notices[name] = isOn ? before : skipTo(before, dead, now)
      const deaths = isOn ? deathsDue(before, dead, thresholds.minutes!, now) : 0
      const use = channels[name] ?? { sentAt: [], folded: 0 }
      if (deaths === 0 || use.sentAt.length >= settings.notificationsPerHour) continue
      const key = this.#parts.ids.make("alert", now)
      const where = await reader.read(before.since)
      outgoing.push({ key, channel: name, notification: noticeOf(deaths, where, severity, key, now) })
      notices[name] = { counted: dead, since: now, at: now }
      channels[name] = { ...use, sentAt: [...use.sentAt, now] }
    }
    return { channels, notices, outgoing }
  }

  /** Never rejects for a notification that was not accepted: it stays in the outbox for the next evaluation. */
  async #handOver({ value: { outbox } }: Read<Board>): Promise<void> {
    if (outbox.length === 0) return
    const { notifier, logger, alertStore } = this.#parts
    const done = new Set<string>()
    for (const { key, channel, notification } of outbox) {
      try {
        await notifier.notify([channel], notification, key)
        done.add(key)
      } catch (error) {
        const isFinal = hasCode(error, "invalid_input") || hasCode(error, "payload_too_large")
        if (isFinal) done.add(key)
        const what = `A notification to ${channel} was not accepted${isFinal ? " and is lost" : "; trying again"}`
        logger.error({ err: error, channel, rule: notification.rule }, `${what}: ${describe(error)}`)
      }
    }
    await readAndSave(async () => {
      const read = await alertStore.readBoard()
      const left = read.value.outbox.filter(({ key }) => !done.has(key))
      if (left.length < read.value.outbox.length)
        await alertStore.saveBoard({ ...read.value, outbox: left }, read)
    })
  }
}

function isWorthSaving({ value, entry }: Read<Board>, board: Board, now: number): boolean {
  if (now - (entry?.updatedAt ?? 0) >= REFRESH_MS) return JSON.stringify(value) !== JSON.stringify(board)
  return shapeOf(value) !== shapeOf(board)
}

/** The board without the texts that change all the time. */
function shapeOf({ alerts, local, ...board }: Board): string {
  const shapes = (all: Board["alerts"]) =>
    all.map(({ name: _name, detail: _detail, since: _since, ...alert }) => alert)
  const { book, outbox } = local
  return JSON.stringify([board, shapes(alerts), { ...book, alerts: shapes(book.alerts) }, outbox])
}

/** The rules of `always` have a number even if it is 0. */
function countFiring(alerts: Board["alerts"], always: readonly RuleId[]): FiringCounts {
  const counts: { [rule in RuleId]?: number } = Object.fromEntries(always.map((id) => [id, 0]))
  for (const { rule, phase } of alerts) if (phase === "firing") counts[rule] = (counts[rule] ?? 0) + 1
  return counts
}
