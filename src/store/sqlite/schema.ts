/**
 * The tables, as numbered migrations. Times are whole milliseconds since 1970 UTC: they sort, and SQL compares
 * them with `unixepoch('now', 'subsec') * 1000`. STRICT, so that a time typed as text is refused instead of never coming due.
 */

/**
 * Indexes by endpoint begin with an era of 2048 rows, so that a transaction changes a few of their pages and not one for each endpoint. With
 * 100 endpoints a delivery adds 1.3 pages to the log instead of 3.2, and takes 50 µs instead of 67. Reading the rows of an endpoint skips
 * from era to era: 1 ms for two million rows.
 */
export const eraOf = (seq: string) => `${seq} >> 11`

import { isTime } from "../columns.ts"

/** The condition of the partial indexes: SQLite uses one only when the query has the same text. */
export const LIVE = "status IN ('pending', 'failed')"
/** The first column of the index `deliveries_live`: every query of waiting deliveries needs it. */
export const IN_BOTH_PARTS = "handed IN (0, 1)"

const TABLES = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE applications (
  id         TEXT PRIMARY KEY,
  org_id     TEXT NOT NULL,
  uid        TEXT,
  name       TEXT NOT NULL,
  metadata   TEXT NOT NULL,
  rate_limit INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER
) STRICT;
CREATE INDEX applications_org ON applications (org_id, id);
CREATE UNIQUE INDEX applications_uid ON applications (org_id, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;

CREATE TABLE endpoints (
  id           TEXT PRIMARY KEY,
  org_id       TEXT NOT NULL,
  app_id       TEXT NOT NULL,
  uid          TEXT,
  url          TEXT NOT NULL,
  description  TEXT NOT NULL,
  event_types  TEXT,
  channels     TEXT,
  headers      TEXT NOT NULL,
  metadata     TEXT NOT NULL,
  retry_name   TEXT,
  retry_policy TEXT,
  ordered      INTEGER NOT NULL,
  concurrency  INTEGER,
  rate_limit   INTEGER,
  disabled     INTEGER NOT NULL,
  paused       INTEGER NOT NULL,
  hold_until   INTEGER,
  secrets      BLOB NOT NULL,
  version      INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  deleted_at   INTEGER
) STRICT;
-- Deleted endpoints included: deleting their application cancels what still waits for them.
CREATE INDEX endpoints_app ON endpoints (app_id, deleted_at, id);
CREATE UNIQUE INDEX endpoints_uid ON endpoints (app_id, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;

CREATE TABLE policies (
  org_id     TEXT NOT NULL,
  name       TEXT NOT NULL,
  policy     TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (org_id, name)
) STRICT, WITHOUT ROWID;

-- Small documents of a tenant. The name precedes the tenant in the key: an API key is looked up without its tenant.
CREATE TABLE entries (
  kind       TEXT NOT NULL,
  org_id     TEXT NOT NULL,
  name       TEXT NOT NULL,
  owner      TEXT,
  version    INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER,
  body       TEXT NOT NULL,
  PRIMARY KEY (kind, name, org_id)
) STRICT;
CREATE INDEX entries_org ON entries (kind, org_id, name);
CREATE INDEX entries_owner ON entries (kind, org_id, owner, name) WHERE owner IS NOT NULL;
CREATE INDEX entries_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;

-- The payload is the last column: SQLite reads all columns before the one it needs, and lists do not need the payload.
CREATE TABLE messages (
  seq           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  app_id        TEXT NOT NULL,
  event_type    TEXT NOT NULL,
  content_type  TEXT NOT NULL,
  event_id      TEXT,
  channels      TEXT NOT NULL,
  tags          TEXT NOT NULL,
  session_id    TEXT,
  metadata      TEXT NOT NULL,
  priority      INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 2),
  max_attempts  INTEGER,
  received_at   INTEGER NOT NULL,
  deliver_at    INTEGER,
  matched       INTEGER NOT NULL,
  purge_at      INTEGER,
  payload_until INTEGER,
  expunged      INTEGER NOT NULL DEFAULT 0,
  payload       BLOB
) STRICT;
CREATE INDEX messages_app ON messages (app_id, seq);
CREATE UNIQUE INDEX messages_event_id ON messages (app_id, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX messages_purge ON messages (purge_at) WHERE purge_at IS NOT NULL;
CREATE INDEX messages_payload_until ON messages (payload_until) WHERE payload_until IS NOT NULL;

-- The rank is the row's queue within the lane: 0 the ordered line, 1 an ordered row that waits for its deliver_at, from 2 on by priority and
-- then first attempts before retries. It is generated, so that a reset typed as SQL moves the row too.
CREATE TABLE webhook_deliveries (
  seq               INTEGER PRIMARY KEY,
  id                TEXT NOT NULL UNIQUE,
  app_id            TEXT NOT NULL,
  webhook_id        TEXT NOT NULL,
  message_id        TEXT NOT NULL,
  session_id        TEXT,
  event_type        TEXT NOT NULL,
  target_url        TEXT NOT NULL,
  status            TEXT NOT NULL DEFAULT 'pending',
  dead_reason       TEXT,
  attempt_count     INTEGER NOT NULL DEFAULT 0,
  max_attempts      INTEGER,
  priority          INTEGER NOT NULL DEFAULT 1 CHECK (priority BETWEEN 0 AND 2),
  ordered           INTEGER NOT NULL DEFAULT 0,
  deferred          INTEGER NOT NULL DEFAULT 0,
  next_retry_at     INTEGER,
  last_attempted_at INTEGER,
  received_at       INTEGER NOT NULL,
  delivered_at      INTEGER,
  error_detail      TEXT,
  age_from          INTEGER,
  stalls            INTEGER NOT NULL DEFAULT 0,
  manual            INTEGER NOT NULL DEFAULT 0,
  purge_at          INTEGER,
  discarded_at      INTEGER,
  rank INTEGER GENERATED ALWAYS AS (
    CASE ordered WHEN 1 THEN deferred = 1 AND attempt_count = 0 ELSE 2 + priority * 2 + (attempt_count > 0) END
  ) VIRTUAL
) STRICT;
-- Waiting rows by lane, without finished ones, so a million of these cost nothing. No next_retry_at means due now.
CREATE INDEX deliveries_live ON webhook_deliveries (webhook_id, rank, coalesce(next_retry_at, 0), seq) WHERE status IN ('pending', 'failed');
-- Not "rank = 0": SQLite would prepare every "rank = ?" again at each binding, to see whether this index fits (200 µs each).
CREATE INDEX deliveries_line ON webhook_deliveries (webhook_id, seq) WHERE status IN ('pending', 'failed') AND rank < 1;
CREATE INDEX deliveries_endpoint ON webhook_deliveries (${eraOf("seq")}, webhook_id, seq);
CREATE INDEX deliveries_message ON webhook_deliveries (message_id);
CREATE INDEX deliveries_dead ON webhook_deliveries (app_id, seq) WHERE status = 'dead';
CREATE INDEX deliveries_dead_seq ON webhook_deliveries (seq) WHERE status = 'dead';
CREATE INDEX deliveries_purge ON webhook_deliveries (purge_at) WHERE purge_at IS NOT NULL;

-- An operator's typed reset clears the columns of the finished row, and its age starts again. Posthorn's own retry sets age_from, which
-- excludes it here.
CREATE TRIGGER deliveries_revived AFTER UPDATE OF status ON webhook_deliveries
WHEN OLD.status IN ('dead', 'delivered') AND NEW.status IN ('pending', 'failed') AND NEW.age_from IS OLD.age_from
BEGIN
  UPDATE webhook_deliveries
     SET dead_reason = NULL, delivered_at = NULL, next_retry_at = NULL, age_from = NULL, stalls = 0, purge_at = NULL, discarded_at = NULL
   WHERE seq = NEW.seq;
END;

-- A revived row takes the order of its endpoint, which may have changed since.
CREATE TRIGGER deliveries_rejoin AFTER UPDATE OF status ON webhook_deliveries
WHEN OLD.status IN ('dead', 'delivered') AND NEW.status IN ('pending', 'failed')
BEGIN
  UPDATE webhook_deliveries SET ordered = coalesce((SELECT ordered FROM endpoints WHERE id = NEW.webhook_id), ordered) WHERE seq = NEW.seq;
END;

-- Claimed deliveries and the token of their claim. A negative started_at: claimed at that time, and not started. A row with an older token is an attempt of unknown outcome.
CREATE TABLE in_flight (seq INTEGER PRIMARY KEY, token INTEGER NOT NULL, started_at INTEGER NOT NULL) STRICT;

CREATE TABLE attempts (
  seq                INTEGER PRIMARY KEY,
  id                 TEXT NOT NULL,
  delivery_id        TEXT NOT NULL,
  webhook_id         TEXT NOT NULL,
  message_id         TEXT NOT NULL,
  attempt_number     INTEGER NOT NULL,
  manual             INTEGER NOT NULL,
  status             TEXT NOT NULL,
  url                TEXT NOT NULL,
  response_status    INTEGER,
  response_body      BLOB,
  response_truncated INTEGER NOT NULL,
  error              TEXT,
  started_at         INTEGER NOT NULL,
  duration_ms        INTEGER NOT NULL
) STRICT;
CREATE INDEX attempts_delivery ON attempts (delivery_id, seq);
CREATE INDEX attempts_endpoint ON attempts (${eraOf("seq")}, webhook_id, seq);

CREATE TABLE tasks (
  seq        INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  org_id     TEXT NOT NULL,
  action     TEXT NOT NULL,
  type       TEXT NOT NULL,
  filter     TEXT NOT NULL,
  status     TEXT NOT NULL,
  data       TEXT,
  total      INTEGER NOT NULL,
  done       INTEGER NOT NULL,
  changed    INTEGER NOT NULL,
  cursor     INTEGER NOT NULL,
  up_to      INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_org ON tasks (org_id, seq);
CREATE INDEX tasks_running ON tasks (seq) WHERE status = 'running';

-- Creates the table of statistics that migrate.ts writes.
ANALYZE meta;
`

/** Views with the names and shapes of seed 004, so that its debug queries run as typed; and readable times. */
const jobsView = (moreColumns: string) => `
CREATE VIEW jobs AS
SELECT d.id,
       'webhook_delivery' AS type,
       json_object('log_id', d.id, 'message_id', d.message_id, 'subscriber_id', d.webhook_id) AS payload_json,
       d.attempt_count AS attempts,
       coalesce(
         d.max_attempts,
         json_extract(coalesce(e.retry_policy, p.policy), '$.maxAttempts'),
         CASE e.retry_name WHEN 'standard' THEN 10 WHEN 'gateway' THEN 5 WHEN 'enterprise' THEN 6 WHEN 'jobs' THEN 6 END
       ) AS max_attempts,
       CASE
         WHEN d.status = 'delivered' THEN 'completed'
         WHEN d.status = 'dead' THEN 'failed'
         WHEN f.seq IS NOT NULL THEN 'running'
         ELSE 'pending'
       END AS status,
       datetime(coalesce(d.next_retry_at, d.last_attempted_at, d.received_at) / 1000, 'unixepoch') AS available_at,
       f.token AS locked_by,
       datetime(abs(f.started_at) / 1000, 'unixepoch') AS locked_at,
       d.error_detail AS error_text,
       datetime(d.received_at / 1000, 'unixepoch') AS created_at,
       datetime(coalesce(d.last_attempted_at, d.received_at) / 1000, 'unixepoch') AS updated_at${moreColumns}
  FROM webhook_deliveries d
  LEFT JOIN endpoints e ON e.id = d.webhook_id
  LEFT JOIN policies p ON p.org_id = e.org_id AND p.name = e.retry_name
  LEFT JOIN in_flight f ON f.seq = d.seq;
`

const VIEWS = `${jobsView("")}
CREATE VIEW webhook_logs AS
SELECT d.id,
       d.webhook_id AS subscriber_id,
       d.event_type AS event,
       d.attempt_count AS attempts,
       a.response_status AS response_code,
       CAST(a.response_body AS TEXT) AS response_body,
       datetime(d.received_at / 1000, 'unixepoch') AS created_at
  FROM webhook_deliveries d
  LEFT JOIN attempts a ON a.seq = (SELECT max(seq) FROM attempts WHERE delivery_id = d.id);

CREATE VIEW webhook_deliveries_readable AS
SELECT d.id, d.webhook_id, d.message_id, d.event_type, d.status, d.dead_reason, d.attempt_count, d.error_detail, d.target_url,
       CASE
         WHEN d.status NOT IN ('pending', 'failed') THEN NULL
         WHEN f.seq IS NOT NULL THEN 'sending'
         WHEN e.deleted_at IS NOT NULL THEN 'endpoint deleted'
         WHEN e.disabled THEN 'endpoint disabled'
         WHEN e.paused THEN 'endpoint paused'
         WHEN coalesce(e.hold_until, 0) > (julianday('now') - 2440587.5) * 86400000 THEN 'Retry-After'
         WHEN coalesce(d.next_retry_at, 0) > (julianday('now') - 2440587.5) * 86400000 THEN 'until next_retry_at'
         ELSE 'due'
       END AS waits_for,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.next_retry_at / 1000.0, 'unixepoch') AS next_retry_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.last_attempted_at / 1000.0, 'unixepoch') AS last_attempted_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.received_at / 1000.0, 'unixepoch') AS received_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.delivered_at / 1000.0, 'unixepoch') AS delivered_at
  FROM webhook_deliveries d
  LEFT JOIN endpoints e ON e.id = d.webhook_id
  LEFT JOIN in_flight f ON f.seq = d.seq;
`

/**
 * Deliveries that are handed over are settled a moment later. Indexed by endpoint, each changed another page of the index twice (0.9 pages of
 * the log for each delivery, with a million waiting rows). With `handed` = 1 they share the end of the index. The column only says where
 * the row is in the index: queries read both parts.
 */
const HANDED = `
ALTER TABLE webhook_deliveries ADD COLUMN handed INTEGER NOT NULL DEFAULT 0 CHECK (handed IN (0, 1));
DROP INDEX deliveries_live;
CREATE INDEX deliveries_live ON webhook_deliveries (handed, webhook_id, rank, coalesce(next_retry_at, 0), seq) WHERE ${LIVE};

-- A revived row is not handed over.
DROP TRIGGER deliveries_rejoin;
CREATE TRIGGER deliveries_rejoin AFTER UPDATE OF status ON webhook_deliveries
WHEN OLD.status IN ('dead', 'delivered') AND NEW.status IN ('pending', 'failed')
BEGIN
  UPDATE webhook_deliveries
     SET ordered = coalesce((SELECT ordered FROM endpoints WHERE id = NEW.webhook_id), ordered), handed = 0
   WHERE seq = NEW.seq;
END;
`

/** A delivery whose age ended before this time, while the endpoint was paused or disabled, gets an attempt first. */
const RESUMED = "ALTER TABLE endpoints ADD COLUMN resumed_at INTEGER"

/** A reset may set the due time; and a finished job has a result. */
const RESET_AND_RESULT = `
DROP TRIGGER deliveries_revived;
CREATE TRIGGER deliveries_revived AFTER UPDATE OF status ON webhook_deliveries
WHEN OLD.status IN ('dead', 'delivered') AND NEW.status IN ('pending', 'failed') AND NEW.age_from IS OLD.age_from
BEGIN
  UPDATE webhook_deliveries
     SET dead_reason = NULL, delivered_at = NULL, age_from = NULL, stalls = 0, purge_at = NULL, discarded_at = NULL,
         next_retry_at = CASE WHEN NEW.next_retry_at IS NOT OLD.next_retry_at THEN NEW.next_retry_at END
   WHERE seq = NEW.seq;
END;

DROP VIEW jobs;
${jobsView(`,
       CASE WHEN d.status IN ('delivered', 'dead') THEN (
         SELECT json_object(
                  'status_code', a.response_status, 'body', CAST(a.response_body AS TEXT), 'error', a.error, 'duration_ms', a.duration_ms
                )
           FROM attempts a WHERE a.delivery_id = d.id ORDER BY a.seq DESC LIMIT 1
       ) END AS result_json`)}`

/** Svix's `version` of an endpoint: stored for its clients, without an effect. */
const API_VERSION = "ALTER TABLE endpoints ADD COLUMN api_version INTEGER NOT NULL DEFAULT 1"

/**
 * next_retry_at of a dated row is the caller's date, on the wall clock. Until then the row has ordered = 1 and deferred = 1, also for an
 * unordered endpoint, so that its rank is 1, apart from rows with times of the steady clock. The fetch that finds it due moves it.
 */
const DATES = "ALTER TABLE webhook_deliveries ADD COLUMN dated INTEGER NOT NULL DEFAULT 0"

/** The reasons of `core/wait.ts`, and the earliest start of the next attempt; SQL knows only the wall clock. */
const VIEW_OF_WAITS = `
DROP VIEW webhook_deliveries_readable;
CREATE VIEW webhook_deliveries_readable AS
SELECT w.id, w.webhook_id, w.message_id, w.event_type, w.status, w.dead_reason, w.attempt_count, w.error_detail, w.target_url,
       CASE
         WHEN w.status NOT IN ('pending', 'failed') THEN NULL
         WHEN w.is_sending THEN 'sending'
         WHEN w.deleted_at IS NOT NULL THEN 'deleted'
         WHEN w.disabled THEN 'disabled'
         WHEN w.paused THEN 'paused'
         WHEN w.start_at > w.now_ms THEN CASE
           WHEN w.start_at = w.next_retry_at THEN CASE WHEN w.deferred AND w.attempt_count = 0 THEN 'scheduled' ELSE 'retry' END
           WHEN w.start_at = w.head_due THEN 'behind'
           ELSE 'held'
         END
         WHEN w.head_due IS NOT NULL THEN 'behind'
         ELSE 'due'
       END AS waits_for,
       strftime('%Y-%m-%dT%H:%M:%fZ', w.next_retry_at / 1000.0, 'unixepoch') AS next_retry_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', w.last_attempted_at / 1000.0, 'unixepoch') AS last_attempted_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', w.received_at / 1000.0, 'unixepoch') AS received_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', w.delivered_at / 1000.0, 'unixepoch') AS delivered_at,
       CASE
         WHEN w.status IN ('pending', 'failed') AND w.deleted_at IS NULL AND NOT (w.disabled OR w.paused OR w.is_sending)
         THEN strftime('%Y-%m-%dT%H:%M:%fZ', max(w.start_at, w.now_ms) / 1000.0, 'unixepoch')
       END AS next_attempt
  FROM (
    SELECT s.*, max(coalesce(s.next_retry_at, 0), coalesce(s.hold_until, 0), coalesce(s.head_due, 0)) AS start_at
      FROM (
        SELECT d.*, e.deleted_at, e.disabled, e.paused, e.hold_until, coalesce(f.started_at > 0, 0) AS is_sending,
               CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now_ms,
               CASE WHEN d.${LIVE} AND d.rank < 1 THEN (
                 SELECT coalesce(h.next_retry_at, 0) FROM webhook_deliveries h
                  WHERE h.seq < d.seq AND h.seq = (
                    SELECT l.seq FROM webhook_deliveries l WHERE l.${LIVE} AND l.rank < 1 AND l.webhook_id = d.webhook_id ORDER BY l.seq LIMIT 1
                  )
               ) END AS head_due
          FROM webhook_deliveries d
          LEFT JOIN endpoints e ON e.id = d.webhook_id
          LEFT JOIN in_flight f ON f.seq = d.seq
      ) s
  ) w;
`

/** See `GateUpdate`. */
const GATE_FENCE = `
ALTER TABLE endpoints ADD COLUMN gate_epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN gate_token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN gate_revision INTEGER NOT NULL DEFAULT 0;
`

/** See `Protection`. The breaker's time is a column of its own, since queries compare it. */
const PROTECTION = `
ALTER TABLE endpoints ADD COLUMN breaker_until INTEGER CHECK (${isTime("breaker_until")});
ALTER TABLE endpoints ADD COLUMN protection TEXT;
ALTER TABLE endpoints ADD COLUMN disabled_at INTEGER CHECK (${isTime("disabled_at")});
ALTER TABLE endpoints ADD COLUMN disabled_reason TEXT;
${VIEW_OF_WAITS.replace(
  "coalesce(s.hold_until, 0),",
  "coalesce(s.hold_until, 0), coalesce(s.breaker_until, 0),",
)
  .replace("e.hold_until,", "e.hold_until, e.breaker_until,")
  .replace("ELSE 'held'", "WHEN w.start_at = w.breaker_until THEN 'breaker'\n           ELSE 'held'")}`

/**
 * Hourly sums of attempts. The buckets of latency are those of `LATENCY_BOUNDS_MS`. With a rowid, although it has a key: a settle then changes
 * only rows that were created in the same hour, which are side by side, and not a page of the key for each endpoint.
 */
const ROLLUPS = `
CREATE TABLE attempt_rollups (
  webhook_id      TEXT NOT NULL,
  hour            INTEGER NOT NULL,
  event_type      TEXT NOT NULL,
  attempt_number  INTEGER NOT NULL,
  app_id          TEXT NOT NULL,
  attempts        INTEGER NOT NULL,
  succeeded       INTEGER NOT NULL,
  dead            INTEGER NOT NULL,
  no_response     INTEGER NOT NULL,
  bytes_out       INTEGER NOT NULL,
  bytes_in        INTEGER NOT NULL,
  duration_ms     INTEGER NOT NULL,
  latency_50      INTEGER NOT NULL,
  latency_100     INTEGER NOT NULL,
  latency_250     INTEGER NOT NULL,
  latency_500     INTEGER NOT NULL,
  latency_1000    INTEGER NOT NULL,
  latency_2500    INTEGER NOT NULL,
  latency_5000    INTEGER NOT NULL,
  latency_10000   INTEGER NOT NULL,
  latency_30000   INTEGER NOT NULL,
  latency_slower  INTEGER NOT NULL,
  last_success_at INTEGER,
  PRIMARY KEY (webhook_id, hour, event_type, attempt_number)
) STRICT;
CREATE INDEX attempt_rollups_app ON attempt_rollups (app_id, hour);
CREATE INDEX attempt_rollups_hour ON attempt_rollups (hour);
`

/** For the health of endpoints. The index has the retries of a lane by age; a delivery that succeeds at once is never in it. */
const HEALTH = `
ALTER TABLE endpoints ADD COLUMN paused_at INTEGER CHECK (${isTime("paused_at")});
CREATE INDEX deliveries_retrying ON webhook_deliveries (webhook_id, received_at) WHERE ${LIVE} AND attempt_count > 0;
`

/** For the survey: dead letters are counted in the index alone. */
const DEAD_REASONS =
  "CREATE INDEX deliveries_dead_reason ON webhook_deliveries (app_id, dead_reason, received_at) WHERE status = 'dead' AND discarded_at IS NULL"

/** The age of a dead letter begins with its death. */
const DEATHS = `
ALTER TABLE webhook_deliveries ADD COLUMN dead_at INTEGER;
DROP INDEX deliveries_dead_reason;
CREATE INDEX deliveries_dead_reason ON webhook_deliveries (app_id, dead_reason, dead_at, last_attempted_at, received_at) WHERE status = 'dead' AND discarded_at IS NULL;
`

/** The ages of deliveries at the start of their attempts. `aged` counts the attempts that are in them: programs before this do not add any. */
const ATTEMPT_AGES = `
ALTER TABLE attempt_rollups ADD COLUMN aged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt_rollups ADD COLUMN age_min_ms INTEGER;
ALTER TABLE attempt_rollups ADD COLUMN age_max_ms INTEGER;
`

/** See `core/traceparent.ts`. */
const TRACEPARENT = "ALTER TABLE messages ADD COLUMN traceparent TEXT;"

/** See `core/inbound-request.ts`. */
const INBOUND = "ALTER TABLE messages ADD COLUMN inbound TEXT;"

/** For the dead letters of an endpoint. */
const DEAD_OF_ENDPOINT =
  "CREATE INDEX deliveries_dead_endpoint ON webhook_deliveries (webhook_id, seq) WHERE status = 'dead' AND discarded_at IS NULL"

/** See `core/attempt-timing.ts`. */
const ATTEMPT_TIMING = "ALTER TABLE attempts ADD COLUMN timing TEXT;"

/** As `transportOf` in core/transport-kind.ts. */
export const isRelay = (url: string) =>
  `lower(substr(ltrim(${url}, ' ' || char(9, 10, 11, 12, 13)), 1, 6)) = 'relay:'`

/** Of an agent, and of all agents. */
const RELAY = `
CREATE INDEX endpoints_relay_url ON endpoints (app_id, url, id) WHERE deleted_at IS NULL AND ${isRelay("url")};
CREATE INDEX endpoints_relay ON endpoints (id) WHERE deleted_at IS NULL AND ${isRelay("url")};
`

/** For the search of the whole tenant. */
const NAMES = `
CREATE INDEX applications_name ON applications (org_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX endpoints_org_uid ON endpoints (org_id, uid, id) WHERE uid IS NOT NULL AND deleted_at IS NULL;
`

export const MIGRATIONS: readonly string[] = [
  TABLES,
  VIEWS,
  HANDED,
  RESUMED,
  RESET_AND_RESULT,
  API_VERSION,
  DATES,
  VIEW_OF_WAITS,
  GATE_FENCE,
  PROTECTION,
  ROLLUPS,
  HEALTH,
  DEAD_REASONS,
  ATTEMPT_AGES,
  TRACEPARENT,
  INBOUND,
  RELAY,
  DEATHS,
  ATTEMPT_TIMING,
  NAMES,
  DEAD_OF_ENDPOINT,
]
