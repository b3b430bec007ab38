/** The channels of a deployment: put, list, delete and test. They belong to the operator, not to a tenant. */
import { isDeepStrictEqual } from "node:util"
import { hasCode, invalid, notFound } from "../../core/errors.ts"
import { requireObject } from "../../core/input.ts"
import { countDeaths } from "../../monitor/deaths.ts"
import type { Endpoints, RotateInput } from "../../resources/endpoints.ts"
import { readAndSave } from "../../resources/optimistic.ts"
import { byName, type Listing, listing, type PageInput } from "../../resources/paging.ts"
import { date, type ResourceContext, requireFound } from "../../resources/resource-context.ts"
import type { Entry } from "../../store/store.ts"
import { NOTIFY_SCHEME } from "../../transport/notify/notify.ts"
import { AlertStore } from "../alert-store.ts"
import { newNotices } from "../dead-letter-notice.ts"
import type { Notification } from "../notification.ts"
import { type AlertChannel, type AlertChannelInput, type ChannelSettings, targetOf } from "./channel.ts"
import { type ChannelNotifier, NOTIFICATION_APP } from "./channel-notifier.ts"
import type { NotificationResult } from "./explain.ts"
import { parseChannel, requireChannelName } from "./parse-channel.ts"
import { CHANNEL_POLICIES } from "./policies.ts"
import type { FoundChannel, StoredChannel } from "./stored-channels.ts"

export class AlertChannels {
  readonly #context: ResourceContext
  readonly #notifier: ChannelNotifier

  constructor(context: ResourceContext, notifier: ChannelNotifier) {
    this.#context = context
    this.#notifier = notifier
  }

  /** Creates or replaces it. Notifications that wait use the new settings from their next attempt. A webhook keeps its secret. */
  async put(name: string, input: AlertChannelInput): Promise<AlertChannel> {
    requireChannelName(name)
    const settings = await this.#vet(input)
    return show({ kind: settings.kind, ...(await this.#save(name, settings)) })
  }

  /** @internal Validates channels by name. The result writes them. `at` begins the field names of errors. */
  async prepare(
    channels: { readonly [name: string]: AlertChannelInput },
    at: string,
  ): Promise<() => Promise<void>> {
    requireObject(channels, at)
    const parsed: [string, ChannelSettings][] = []
    for (const [name, input] of Object.entries(channels)) {
      try {
        parsed.push([requireChannelName(name), await this.#vet(input)])
      } catch (error) {
        throw hasCode(error, "invalid_input") ? error.within(`${at}.${name}`) : error
      }
    }
    await this.#notifier.stored.requireRoom(parsed.map(([name]) => name))
    return async () => {
      for (const [name, settings] of parsed) await this.#save(name, settings)
    }
  }

  async get(name: string): Promise<AlertChannel> {
    return show(await this.#find(name))
  }

  /** By name. */
  list(page: PageInput = {}): Listing<AlertChannel> {
    const { stored } = this.#notifier
    return listing(page, {
      by: byName,
      read: async () => (read) => stored.entries(read),
      show: (entry: Entry) => show(stored.read(entry)),
    })
  }

  /** Notifications that wait for it are cancelled. */
  async delete(name: string): Promise<void> {
    await this.#find(name)
    await this.#notifier.stored.delete(name)
    const { endpoints } = this.#notifier.tenant
    await endpoints.delete(NOTIFICATION_APP, name).catch(unlessNotFound)
  }

  /** Sends a test at once. It resolves with a sentence, also when the channel does not work. */
  async test(name: string): Promise<NotificationResult> {
    const { kind } = (await this.#require(name)).settings
    const now = this.#context.clock.now()
    const notification: Notification = {
      kind: "test",
      rule: "test",
      severity: "info",
      summary: `This is a test of the channel ${name}`,
      description: "Nothing is wrong. Alerts of this Posthorn arrive here.",
      groupKey: `test:${name}:${now}`,
      startedAt: now,
      endedAt: null,
      subjects: [],
      more: 0,
    }
    const sent = await this.#notifier.test(name, notification)
    // A test leaves no open incident behind.
    if (sent.delivered && kind === "pagerduty")
      return this.#notifier.test(name, { ...notification, kind: "resolved", endedAt: now })
    return sent
  }

  /** The key that a receiver verifies the webhooks of this channel with. */
  async secret(name: string): Promise<{ readonly key: string }> {
    const { endpoints, names } = await this.signer(name)
    return endpoints.secret(...names)
  }

  /** Signs with the new secret, and with the old one until the grace period ends. Returns the key for verification. */
  async rotateSecret(name: string, input: RotateInput = {}): Promise<{ readonly key: string }> {
    const { endpoints, names } = await this.signer(name)
    return endpoints.rotateSecret(...names, input)
  }

  /** @internal The endpoint whose secret signs the webhooks of this channel. */
  async signer(name: string): Promise<{ readonly endpoints: Endpoints; readonly names: [string, string] }> {
    const { kind } = (await this.#require(name)).settings
    if (kind !== "webhook") throw notFound("channel of the kind webhook", name)
    return { endpoints: this.#notifier.tenant.endpoints, names: [NOTIFICATION_APP, name] }
  }

  /** Valid, and its URL allowed by the egress guard. */
  async #vet(input: AlertChannelInput): Promise<ChannelSettings> {
    const settings = parseChannel(input)
    const problem = "url" in settings ? await this.#context.router.urlProblem(settings.url) : null
    if (problem !== null) throw invalid("url", problem)
    return settings
  }

  /** The endpoint first: a channel that is listed can be sent to. */
  async #save(name: string, settings: ChannelSettings): Promise<StoredChannel> {
    return readAndSave(async () => {
      const { stored } = this.#notifier
      const before = await stored.find(name)
      await this.#putEndpoint(name, settings, before)
      if (before !== null && isDeepStrictEqual(before.settings, settings)) return { ...before, settings }
      if (before === null) await this.#beginNotices(name)
      return stored.save(name, settings, before)
    })
  }

  /** Deliveries that die before the next evaluation belong into the first notice. */
  async #beginNotices(name: string): Promise<void> {
    const { store, clock } = this.#context
    const alertStore = new AlertStore(store, clock)
    const begun = newNotices(await countDeaths(store, clock.now()), clock.now())
    await readAndSave(async () => {
      const read = await alertStore.readBoard()
      await alertStore.saveBoard({ ...read.value, notices: { ...read.value.notices, [name]: begun } }, read)
    })
  }

  async #putEndpoint(name: string, settings: ChannelSettings, before: FoundChannel | null): Promise<void> {
    const { applications, endpoints } = this.#notifier.tenant
    const { kind } = settings
    const fields = CHANNEL_POLICIES[kind]
    const existing = await endpoints.get(NOTIFICATION_APP, name).catch(unlessNotFound)
    if (existing !== null) {
      if (before !== null && isDeepStrictEqual(before.settings, settings)) return
      if (before?.kind !== kind) await endpoints.update(NOTIFICATION_APP, name, fields)
      // Corrected settings deserve a try at once.
      await endpoints.reset(NOTIFICATION_APP, name)
      return
    }
    await applications
      .create({ name: "Notifications", uid: NOTIFICATION_APP })
      .catch((error) => unlessCode(error, "conflict"))
    await endpoints
      .create(NOTIFICATION_APP, { uid: name, url: `${NOTIFY_SCHEME}${name}`, ...fields })
      .catch((error) => unlessCode(error, "conflict"))
  }

  #find(name: string): Promise<FoundChannel> {
    return requireFound("channel", name, (known) => this.#notifier.stored.find(known))
  }

  /** Rejects if it cannot be decrypted. */
  #require(name: string): Promise<StoredChannel> {
    return requireFound("channel", name, (known) => this.#notifier.stored.get(known))
  }
}

function unlessCode(error: unknown, code: "conflict" | "not_found"): null {
  if (!hasCode(error, code)) throw error
  return null
}

const unlessNotFound = (error: unknown) => unlessCode(error, "not_found")

const UNREADABLE = "nowhere: its settings cannot be decrypted; put it again, or delete it"

function show({ name, kind, settings, createdAt, updatedAt }: FoundChannel): AlertChannel {
  return {
    name,
    kind,
    deadLetters: settings?.deadLetters ?? false,
    target: settings === null ? UNREADABLE : targetOf(settings),
    createdAt: date(createdAt),
    updatedAt: date(updatedAt),
  }
}
