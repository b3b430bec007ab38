/** Filters as SQL conditions for both stores. `Dialect` has everything that SQLite and PostgreSQL write differently. */
import { transportOf } from "../core/transport-kind.ts"
import type {
  ApplicationFilter,
  AttemptFilter,
  Content,
  DeliveryFilter,
  EndpointFilter,
  EntryKind,
  MessageFilter,
  Page,
  RollupFilter,
  SearchRows,
  Span,
  TaskFilter,
} from "./store.ts"

type Value = string | number | readonly string[]

/** Fragments of SQL. `?` stands for the value. */
export interface Dialect<V> {
  placeholder(number: number): string
  toParameter(value: Value): V
  /** The column has one of the values of a list. */
  oneOf(column: string): string
  /** The JSON list in the column contains a value. */
  contains(column: string): string
  /** The column has one of the values that a query selects. */
  oneOfQuery(column: string, query: string): string
  /** The column begins with a value. */
  startsWith(column: string): string
  /** The message with this id, as `m`, fulfils a condition. */
  ofMessage(id: string, condition: string): string
  /** The sum of a column, at most the largest exact number. */
  sum(column: string): string
  /** The delivery `d` is not finished. */
  readonly live: string
  /** An endpoint's URL has the transport `relay`; as the partial indexes say it. */
  isRelay(url: string): string
  /** The start of the last error of the delivery `d`, up to a colon. */
  readonly cause: string
  /** The class of the last response to the delivery `d`. */
  readonly lastResponseClass: string
}

export class Conditions<V> {
  readonly values: V[]
  readonly dialect: Dialect<V>
  #text = "true"

  constructor(dialect: Dialect<V>, values: V[] = []) {
    this.dialect = dialect
    this.values = values
  }

  /** Conditions of another part of the statement, with the same parameters. */
  sibling(): Conditions<V> {
    return new Conditions(this.dialect, this.values)
  }

  /** Without a value there is no condition. */
  narrow(condition: string, value: Value | undefined): this {
    return value === undefined ? this : this.require(condition.replace("?", this.parameter(value)))
  }

  require(condition: string): this {
    this.#text += ` AND ${condition}`
    return this
  }

  requireIf(flag: boolean | undefined, condition: string): this {
    return flag ? this.require(condition) : this
  }

  oneOf(column: string, values: readonly string[] | undefined): this {
    return this.narrow(this.dialect.oneOf(column), values)
  }

  span(column: string, { since, until }: Span): this {
    return this.narrow(`${column} >= ?`, since).narrow(`${column} < ?`, until)
  }

  rows(column: string, rows: SearchRows | undefined): this {
    return this.narrow(`${column} >= ?`, rows?.least).narrow(`${column} <= ?`, rows?.most)
  }

  /** `within` leads from the row to its message `m`. */
  content({ eventTypes, channel, tag }: Content, within = (condition: string) => condition): this {
    const { oneOf, contains } = this.dialect
    return this.narrow(within(oneOf("m.event_type")), eventTypes)
      .narrow(within(contains("m.channels")), channel)
      .narrow(within(contains("m.tags")), tag)
  }

  /** For rows that have only the id of their message. */
  contentOfMessage(content: Content, id: string): this {
    return this.content(content, (condition) => this.dialect.ofMessage(id, condition))
  }

  /** The tenant of a row, through the table that knows it: a test of each row, so that the list's own order is kept. */
  tenant(orgId: string | undefined, table: "applications" | "endpoints", id: string): this {
    return this.narrow(`EXISTS (SELECT 1 FROM ${table} o WHERE o.id = ${id} AND o.org_id = ?)`, orgId)
  }

  /** Placeholder of a parameter with this value. */
  parameter(value: Value): string {
    return this.dialect.placeholder(this.values.push(this.dialect.toParameter(value)))
  }

  toString(): string {
    return this.#text
  }
}

/** 200 for the status 204; 0 without a response. */
export function responseClassOf(attempt: string): string {
  return `coalesce(${attempt}.response_status, 0) / 100 * 100`
}

/** Dead without having been given up. */
export const CALLED_OFF = "d.dead_reason IN ('cancelled', 'expunged')"

/** Found by the primary key of the endpoints, for each delivery. */
const ENDPOINT_SENDS =
  "EXISTS (SELECT 1 FROM endpoints e WHERE e.id = d.webhook_id AND NOT (e.paused OR e.disabled))"

/** Of the table `d`. The literal 'dead' lets SQLite use the index of dead letters. */
export function ofDeliveries<V>(dialect: Dialect<V>, filter: DeliveryFilter): Conditions<V> {
  const { status, live, calledOff, eventTypes, ...ofMessage } = filter
  // The index of waiting deliveries has endpoints and no applications.
  const ofApplication = live
    ? dialect.oneOfQuery("d.webhook_id", "SELECT id FROM endpoints WHERE app_id = ?")
    : "d.app_id = ?"
  return new Conditions(dialect)
    .requireIf(status === "dead" || calledOff !== undefined, "d.status = 'dead'")
    .narrow("d.status = ?", status === "dead" ? undefined : status)
    .requireIf(live, dialect.live)
    .requireIf(calledOff !== undefined, `(${CALLED_OFF}) IS ${calledOff ? "TRUE" : "NOT TRUE"}`)
    .requireIf(filter.undiscarded, "d.discarded_at IS NULL")
    .requireIf(filter.endpointSends, ENDPOINT_SENDS)
    .narrow(ofApplication, filter.appId)
    .narrow("d.webhook_id = ?", filter.endpointId)
    .narrow("d.message_id = ?", filter.messageId)
    .rows("d.seq", filter.rows)
    .narrow("d.dead_reason = ?", filter.deadReason)
    .narrow(`${dialect.cause} = ?`, filter.cause)
    .oneOf("d.event_type", eventTypes)
    .narrow("(d.attempt_count > 0 OR d.dated OR coalesce(d.next_retry_at, 0) <= ?)", filter.startableBy)
    .narrow("(NOT d.dated OR d.next_retry_at <= ?)", filter.datesBy ?? filter.startableBy)
    .span("d.received_at", filter)
    .tenant(filter.orgId, "applications", "d.app_id")
    .contentOfMessage(ofMessage, "d.message_id")
    .narrow(`${dialect.lastResponseClass} = ?`, filter.responseClass)
}

/** Attempts are found through the deliveries of the message: their table has no index by message. */
export function ofMessageId<V>(dialect: Dialect<V>, placeholder = "?"): string {
  return dialect.oneOfQuery(
    "a.delivery_id",
    `SELECT id FROM webhook_deliveries WHERE message_id = ${placeholder}`,
  )
}

/** A condition of an organization's id: a tenant of Posthorn's own. The same as `isShadow`. */
export const SHADOW = "LIKE '%:%'"

/** Of the table `a`, without `appId`. */
export function ofAttempts<V>(dialect: Dialect<V>, filter: AttemptFilter): Conditions<V> {
  return new Conditions(dialect)
    .narrow("a.delivery_id = ?", filter.deliveryId)
    .narrow("a.webhook_id = ?", filter.endpointId)
    .narrow(ofMessageId(dialect), filter.messageId)
    .rows("a.seq", filter.rows)
    .oneOf("a.status", filter.statuses)
    .span("a.started_at", filter)
    .tenant(filter.orgId, "endpoints", "a.webhook_id")
    .contentOfMessage(filter, "a.message_id")
    .narrow(`${responseClassOf("a")} = ?`, filter.responseClass)
}

/** Of the table `r`. A filter by endpoint or application finds the rows, and the tenant only tests them. */
export function ofRollups<V>(dialect: Dialect<V>, filter: RollupFilter): Conditions<V> {
  const { orgId, withShadows, appId, endpointIds, eventType } = filter
  const isOther = `NOT EXISTS (SELECT 1 FROM applications o WHERE o.id = r.app_id AND o.org_id ${SHADOW})`
  const where = new Conditions(dialect)
    .oneOf("r.webhook_id", endpointIds)
    .requireIf(withShadows === false, isOther)
    .narrow("r.app_id = ?", appId)
    .narrow("r.event_type = ?", eventType)
    .span("r.hour", filter)
    .narrow("r.aged >= r.attempts AND r.age_min_ms >= ?", filter.olderThanMs)
    .narrow("(r.aged < r.attempts OR r.age_max_ms >= ?)", filter.maybeOlderThanMs)
  return (appId ?? endpointIds) === undefined
    ? where.narrow(dialect.oneOfQuery("r.app_id", "SELECT id FROM applications WHERE org_id = ?"), orgId)
    : where.tenant(orgId, "applications", "r.app_id")
}

/** Of the table `m`. */
export function ofMessages<V>(dialect: Dialect<V>, filter: MessageFilter): Conditions<V> {
  return new Conditions(dialect)
    .narrow("m.app_id = ?", filter.appId)
    .rows("m.seq", filter.rows)
    .span("m.received_at", filter)
    .content(filter)
}

/** Accepted messages by application; `appIds` null for all applications of the tenant. */
export function ofUsage<V>(dialect: Dialect<V>, orgId: string, appIds: readonly string[] | null, span: Span) {
  return new Conditions(dialect)
    .narrow(dialect.oneOfQuery("m.app_id", "SELECT id FROM applications WHERE org_id = ?"), orgId)
    .oneOf("m.app_id", appIds ?? undefined)
    .span("m.received_at", span)
}

/** Of the table `applications`. Endpoints are found by the index `endpoints_app`. */
export function ofApplications<V>(dialect: Dialect<V>, orgId: string, filter: ApplicationFilter = {}) {
  const hasEndpoint = (condition: string) =>
    `EXISTS (SELECT 1 FROM endpoints e WHERE e.app_id = applications.id AND e.deleted_at IS NULL AND ${condition})`
  const hasNone = `NOT ${hasEndpoint("true")}`
  return new Conditions(dialect)
    .narrow("org_id = ?", orgId)
    .require("deleted_at IS NULL")
    .narrow("name = ?", filter.name)
    .requireIf(filter.excludeWithoutEndpoints, hasEndpoint("true"))
    .requireIf(filter.excludeAllDisabled, `(${hasNone} OR ${hasEndpoint("NOT e.disabled")})`)
    .narrow(`(${hasNone} OR ${hasEndpoint(`NOT ${dialect.startsWith("e.url")}`)})`, filter.excludeAllTo)
}

const MOST_APPLICATIONS = 1000

/** Messages `m` of the tenant's newest applications with an event id, by the index `messages_event_id`. */
export function ofEventId<V>(dialect: Dialect<V>, orgId: string, eventId: string) {
  const newest = `SELECT id FROM applications WHERE org_id = ? AND deleted_at IS NULL ORDER BY id DESC LIMIT ${MOST_APPLICATIONS}`
  return new Conditions(dialect)
    .narrow(dialect.oneOfQuery("m.app_id", newest), orgId)
    .narrow("m.event_id = ?", eventId)
}

/** Of the table `e`. Endpoints of the relay have partial indexes, which the planners use if the condition is written out. */
export function ofEndpoints<V>(dialect: Dialect<V>, filter: EndpointFilter): Conditions<V> {
  const { transport, url } = filter
  const isRelay = transport === "relay" || (url !== undefined && transportOf(url) === "relay")
  return new Conditions(dialect)
    .narrow("e.org_id = ?", filter.orgId)
    .narrow("e.app_id = ?", filter.appId)
    .narrow("e.id = ?", filter.endpointId)
    .narrow("e.url = ?", url)
    .narrow("e.uid = ?", filter.uid)
    .requireIf(isRelay, dialect.isRelay("e.url"))
    .narrow("(e.hold_until > ? OR e.breaker_until IS NOT NULL OR e.protection IS NOT NULL)", filter.heldAfter)
    .narrow(
      `(e.disabled OR e.paused OR e.protection IS NOT NULL OR e.breaker_until IS NOT NULL OR ${dialect.isRelay("e.url")} OR EXISTS (
         SELECT 1 FROM attempt_rollups r WHERE r.webhook_id = e.id AND r.hour >= ? AND r.succeeded < r.attempts
       ))`,
      filter.troubledSince,
    )
    .require("e.deleted_at IS NULL")
}

export function ofEntries<V>(dialect: Dialect<V>, kind: EntryKind, orgId: string, now: number) {
  return new Conditions(dialect)
    .narrow("kind = ?", kind)
    .narrow("org_id = ?", orgId)
    .narrow("(expires_at IS NULL OR expires_at > ?)", now)
}

export function ofTasks<V>(dialect: Dialect<V>, orgId: string, { status, types }: TaskFilter = {}) {
  return new Conditions(dialect).narrow("org_id = ?", orgId).narrow("status = ?", status).oneOf("type", types)
}

export interface Paging {
  readonly direction: "ASC" | "DESC"
  /** Placeholder of the limit. */
  readonly limit: string
  /** Brings the rows into the list's order. */
  arrange<R>(rows: R[]): R[]
}

/** Narrows the list to the rows beyond the page's `from`. `by` is the column that orders the list. */
export function paging<V>(where: Conditions<V>, by: string, page: Page<string | number>): Paging {
  const { limit, order, from, back } = page
  // Going back, the rows nearest to `from` come first.
  const upwards = (order === "ascending") !== back
  where.narrow(`${by} ${upwards ? ">" : "<"} ?`, from ?? undefined)
  return {
    direction: upwards ? "ASC" : "DESC",
    limit: where.parameter(limit),
    arrange: (rows) => (back ? rows.reverse() : rows),
  }
}

/** A step of a task: the oldest rows after its cursor. */
export function oldestFirst(after: number, limit: number): Page {
  return { limit, order: "ascending", from: after, back: false }
}
