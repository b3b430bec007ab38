/**
 * Sends notifications. They are messages of a shadow tenant, one endpoint for each channel, so lanes, retries, breaker and dead letters
 * apply to them as to all deliveries. `sendNow` needs neither engine nor store.
 */
import { createHash } from "node:crypto"
import type { AlertChannelKind } from "../../core/alert-channel-kinds.ts"
import { bytesOfText } from "../../core/bytes.ts"
import { hasCode, notFound } from "../../core/errors.ts"
import { NOTIFICATIONS_ORG } from "../../core/org.ts"
import { judge } from "../../core/outcome.ts"
import { parsePolicy } from "../../core/parse-policy.ts"
import type { Policy } from "../../core/policy.ts"
import { Target } from "../../engine/target.ts"
import type { EventSubscriber, InternalEvent } from "../../observe/event-stream.ts"
import type { Logger } from "../../observe/log.ts"
import type { ResourceContext } from "../../resources/resource-context.ts"
import { Tenant } from "../../tenant.ts"
import { NOTIFY_SCHEME, type NotifyTransport } from "../../transport/notify/notify.ts"
import type { Outgoing } from "../../transport/notify/outgoing.ts"
import type { OutboundRequest, TransportResult } from "../../transport/transport.ts"
import { VERSION } from "../../version.ts"
import type { Notification } from "../notification.ts"
import type { DirectResult, NotifiedChannel, Notifier } from "../notifier.ts"
import { compose } from "./compose.ts"
import { explain, type NotificationResult } from "./explain.ts"
import { writePayload } from "./payload.ts"
import { CHANNEL_POLICIES } from "./policies.ts"
import { type StoredChannel, StoredChannels } from "./stored-channels.ts"

/** The application of the shadow tenant that the endpoints of channels belong to. */
export const NOTIFICATION_APP = "notifications"

const CONTENT_TYPE = "application/json"
const TIMEOUT_MS = 30_000
const LONGEST_KEY = 256

/** The only URLs that endpoints of the shadow tenant have. */
const NOTIFY_URLS = { schemes: [NOTIFY_SCHEME], urlProblem: () => Promise.resolve(null) }

export interface ChannelNotifierParts
  extends Pick<ResourceContext, "store" | "vault" | "clock" | "ids" | "instruments"> {
  readonly transport: NotifyTransport
  readonly logger: Logger
  /** The context of any tenant; it exists later than the notifier. */
  context(): ResourceContext
}

/** A channel that can be sent to without the store. */
interface Loaded extends StoredChannel {
  readonly target: Target
  readonly policy: Policy
}

export class ChannelNotifier implements Notifier, EventSubscriber {
  readonly stored: StoredChannels
  readonly #parts: ChannelNotifierParts
  #tenant: Tenant | null = null
  #loaded: ReadonlyMap<string, Loaded> = new Map()
  /** The kinds of the endpoints that this process has sent to: what its settled deliveries are counted by. */
  readonly #kinds = new Map<string, AlertChannelKind>()

  constructor(parts: ChannelNotifierParts) {
    this.#parts = parts
    this.stored = new StoredChannels(parts)
  }

  /** The shadow tenant. No key can name it. */
  get tenant(): Tenant {
    this.#tenant ??= new Tenant({ ...this.#parts.context(), orgId: NOTIFICATIONS_ORG, router: NOTIFY_URLS })
    return this.#tenant
  }

  /**
   * Accepts a notification for each channel. The same key sends once, also from another process or after a restart, and also if the words
   * of the notification have changed. A channel that does not exist is skipped with a warning.
   */
  async notify(names: readonly string[], notification: Notification, idempotencyKey: string): Promise<void> {
    const payload = writePayload(notification)
    const message = { eventType: payload.type, payload, contentType: CONTENT_TYPE }
    for (const name of new Set(names)) {
      const key = keyOf(idempotencyKey, name)
      try {
        await this.tenant.messages.sendTo(NOTIFICATION_APP, name, { ...message, idempotencyKey: key })
      } catch (error) {
        // With this key, another notification was sent: the same transition, told in other words.
        if (hasCode(error, "conflict")) continue
        if (!hasCode(error, "not_found")) throw error
        this.#parts.logger.warn(
          { channel: name },
          `There is no channel "${name}"; a notification has no way out`,
        )
      }
    }
  }

  /** Reads all channels. From then on, `sendNow` needs no store for those that are readable. */
  async channels(): Promise<readonly NotifiedChannel[]> {
    const [stored, appId] = await Promise.all([this.stored.all(), this.#appId()])
    const loaded = await Promise.all(
      stored.map(({ settings, ...rest }) => settings && this.#load({ ...rest, settings }, appId)),
    )
    this.#loaded = new Map(loaded.filter((one) => one !== null).map((one) => [one.name, one]))
    return stored.map(({ name, settings }) => {
      return { name, deadLetters: settings?.deadLetters ?? false, isReadable: this.#loaded.has(name) }
    })
  }

  /** Past the engine. Judges answers as the engine would. */
  async sendNow(name: string, notification: Notification): Promise<DirectResult> {
    const channel = this.#loaded.get(name) ?? (await this.#find(name))
    if (channel === null) return { outcome: "permanent", detail: "the channel does not exist any more" }
    const { outcome, sent } = await this.#attempt(channel, notification)
    const verdict = outcome.kind === "interrupted" ? "retry" : judge(outcome, channel.policy)
    const isFinal = verdict !== "delivered" && verdict !== "retry"
    this.#count(channel, outcome, verdict === "delivered" ? "delivered" : isFinal ? "dead" : "failed")
    if (verdict === "delivered") return { outcome: "delivered" }
    return { outcome: isFinal ? "permanent" : "transient", detail: sent.detail }
  }

  /** Past the engine, once, with the channel as it is stored now. */
  async test(name: string, notification: Notification): Promise<NotificationResult> {
    const channel = await this.#find(name)
    if (channel === null) throw notFound("channel", name)
    const { outcome, sent } = await this.#attempt(channel, notification)
    this.#count(channel, outcome, sent.delivered ? "delivered" : "dead")
    return sent
  }

  async #attempt({ settings, target }: Loaded, notification: Notification) {
    const { clock, ids, transport } = this.#parts
    const payload = writePayload(notification)
    const body = bytesOfText(JSON.stringify(payload))
    const receivedAt = clock.now()
    const messageId = ids.make("msg", receivedAt)
    // No delivery is stored for it.
    const delivery = {
      ...{ id: messageId, messageId, eventType: payload.type, contentType: CONTENT_TYPE },
      ...{ attemptCount: 0, manual: false, receivedAt, inbound: null },
    }
    const request = target.request(delivery, body, clock, null, TIMEOUT_MS)
    const result = await transport.sendComposed(request, compose(settings, body, messageId))
    return { outcome: result.outcome, sent: explain(settings, result) }
  }

  #count(
    { settings }: Loaded,
    { kind }: TransportResult["outcome"],
    result: "delivered" | "failed" | "dead",
  ): void {
    if (kind !== "interrupted") this.#parts.instruments.notificationSettled(settings.kind, result)
  }

  /** @internal For the transport. */
  async compose(name: string, { endpointId, body, webhook }: OutboundRequest): Promise<Outgoing | null> {
    const channel = await this.stored.get(name)
    if (channel === null) return null
    this.#kinds.set(endpointId, channel.settings.kind)
    return compose(channel.settings, body, webhook!.messageId)
  }

  handle(event: InternalEvent): void {
    if (this.#kinds.size === 0 || event.type !== "delivery.settled") return
    const kind = this.#kinds.get(event.endpointId)
    const { status, deadReason } = event.change
    if (kind === undefined || status === "pending" || deadReason === "cancelled") return
    this.#parts.instruments.notificationSettled(kind, status)
  }

  async #find(name: string): Promise<Loaded | null> {
    const channel = await this.stored.get(name)
    return channel && this.#load(channel, await this.#appId())
  }

  async #appId(): Promise<string | null> {
    const application = await this.#parts.store.getApplication(NOTIFICATIONS_ORG, NOTIFICATION_APP)
    return application?.id ?? null
  }

  /** Null while another process creates or deletes it. */
  async #load(channel: StoredChannel, appId: string | null): Promise<Loaded | null> {
    const { store, vault } = this.#parts
    const endpoint = appId === null ? null : await store.getEndpoint(appId, channel.name)
    if (endpoint === null) return null
    const policy = parsePolicy(CHANNEL_POLICIES[channel.settings.kind].retry)
    return { ...channel, policy, target: new Target(endpoint, vault, policy, `Posthorn/${VERSION}`) }
  }
}

function keyOf(idempotencyKey: string, name: string): string {
  const key = `${idempotencyKey}:${name}`
  return key.length <= LONGEST_KEY ? key : createHash("sha256").update(key).digest("hex")
}
