/**
 * The tables on PostgreSQL. Names, columns and times (whole milliseconds since 1970 UTC) are those of the SQLite store, so that an operator's
 * SQL works on both. Many processes need some differences:
 *
 * - `webhook_deliveries` is partitioned: live rows are few and hot; finished rows are in partitions by the day of their removal, so that
 *   retention drops tables instead of deleting rows. `attempts` is partitioned in the same way.
 * - `lanes` has a row for each endpoint: owner, token, due time, and deliveries in hand. A send never updates it (64 senders to one endpoint:
 *   1 014/s with an update, 4 462/s with an insert into `lane_wakes`).
 * - Ids have the collation "C": they sort by time, as on SQLite, and faster than by the rules of a language.
 */
import { isTime } from "../columns.ts"
import { LANE_FUNCTIONS, LANE_TRANSPORTS, NEVER, WORKER_EPOCHS } from "./lane-functions.ts"
import { HANDOFF, VERSIONS } from "./schema-handoff.ts"
import { SUBSCRIPTIONS } from "./schema-subscriptions.ts"
import { VIEW_OF_WAITS, VIEW_OF_WAITS_WITH_BREAKER, VIEWS, VIEWS_WITH_RESULT } from "./schema-views.ts"

/** Finished and kept for good. */
export const KEPT_DAY = 1_000_000
/** Of an attempt whose delivery is not finished. */
export const LIVE_DAY = 0

/** `dueAt` is the new next_retry_at after a typed reset. */
const revive = (create: string, more: string, dueAt = "NULL") => `
-- A delivery that is revived, by Posthorn's retry or by an operator's typed reset, takes the order of its endpoint and keeps its attempts, and
-- its lane is woken. A typed reset (age_from unchanged) also clears the columns of the finished row, and its age starts again.
${create} FUNCTION posthorn_revive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.age_from IS NOT DISTINCT FROM OLD.age_from THEN
    NEW.dead_reason := NULL;
    NEW.delivered_at := NULL;
    NEW.next_retry_at := ${dueAt};
    NEW.age_from := NULL;
    NEW.stalls := 0;
    NEW.purge_at := NULL;
    NEW.discarded_at := NULL;
  END IF;
  NEW.purge_day := ${KEPT_DAY};${more}
  NEW.ordered := coalesce((SELECT ordered FROM endpoints WHERE id = NEW.webhook_id), NEW.ordered);
  UPDATE attempts SET purge_day = ${LIVE_DAY} WHERE delivery_id = NEW.id AND purge_day = OLD.purge_day;
  INSERT INTO lane_wakes (lane_id, due_at) VALUES (NEW.webhook_id, coalesce(NEW.next_retry_at, 0));
  RETURN NEW;
END $$;
`

/** A due time that the same statement sets is kept. */
const GIVEN_DUE = "CASE WHEN NEW.next_retry_at IS DISTINCT FROM OLD.next_retry_at THEN NEW.next_retry_at END"
const NOT_HANDED = "\n  NEW.handed_token := NULL;"

const TABLES = `
CREATE TABLE meta (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);

CREATE TABLE applications (
  id         text COLLATE "C" PRIMARY KEY,
  org_id     text COLLATE "C" NOT NULL,
  uid        text COLLATE "C",
  name       text COLLATE "C" NOT NULL,
  metadata   text NOT NULL,
  rate_limit integer,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  deleted_at bigint
);
CREATE INDEX applications_org ON applications (org_id, id);
CREATE UNIQUE INDEX applications_uid ON applications (org_id, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;

CREATE TABLE endpoints (
  id           text COLLATE "C" PRIMARY KEY,
  org_id       text COLLATE "C" NOT NULL,
  app_id       text COLLATE "C" NOT NULL,
  uid          text COLLATE "C",
  url          text NOT NULL,
  description  text NOT NULL,
  event_types  text[],
  channels     text[],
  headers      text NOT NULL,
  metadata     text NOT NULL,
  retry_name   text COLLATE "C",
  retry_policy text,
  ordered      boolean NOT NULL,
  concurrency  integer,
  rate_limit   integer,
  disabled     boolean NOT NULL,
  paused       boolean NOT NULL,
  hold_until   bigint,
  secrets      bytea NOT NULL,
  version      integer NOT NULL,
  created_at   bigint NOT NULL,
  updated_at   bigint NOT NULL,
  deleted_at   bigint
);
CREATE INDEX endpoints_org ON endpoints (org_id, id) WHERE deleted_at IS NULL;
CREATE INDEX endpoints_app ON endpoints (app_id, id) WHERE deleted_at IS NULL;
-- Deleted endpoints included: deleting their application cancels what still waits for them.
CREATE INDEX endpoints_ever ON endpoints (app_id);
CREATE UNIQUE INDEX endpoints_uid ON endpoints (app_id, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX endpoints_retry_name ON endpoints (org_id, retry_name) WHERE retry_name IS NOT NULL;

CREATE TABLE policies (
  org_id     text COLLATE "C" NOT NULL,
  name       text COLLATE "C" NOT NULL,
  policy     text NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (org_id, name)
);

-- Small documents of a tenant. The name precedes the tenant in the key: an API key is looked up without its tenant.
CREATE TABLE entries (
  kind       text COLLATE "C" NOT NULL,
  name       text COLLATE "C" NOT NULL,
  org_id     text COLLATE "C" NOT NULL,
  owner      text COLLATE "C",
  body       text NOT NULL,
  version    integer NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint,
  PRIMARY KEY (kind, name, org_id)
);
CREATE INDEX entries_org ON entries (kind, org_id, name);
CREATE INDEX entries_owner ON entries (kind, org_id, owner, name) WHERE owner IS NOT NULL;
CREATE INDEX entries_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;

CREATE SEQUENCE message_seq;
CREATE TABLE messages (
  seq           bigint PRIMARY KEY DEFAULT nextval('message_seq'),
  id            text COLLATE "C" NOT NULL,
  app_id        text COLLATE "C" NOT NULL,
  event_type    text NOT NULL,
  payload       bytea,
  expunged      boolean NOT NULL DEFAULT false,
  content_type  text NOT NULL,
  event_id      text COLLATE "C",
  channels      text NOT NULL,
  tags          text NOT NULL,
  session_id    text,
  metadata      text NOT NULL,
  priority      smallint NOT NULL CHECK (priority BETWEEN 0 AND 2),
  max_attempts  integer,
  received_at   bigint NOT NULL,
  deliver_at    bigint,
  matched       integer NOT NULL,
  purge_at      bigint,
  payload_until bigint
);
CREATE UNIQUE INDEX messages_id ON messages (id);
CREATE INDEX messages_app ON messages (app_id, seq);
CREATE UNIQUE INDEX messages_event_id ON messages (app_id, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX messages_purge ON messages (purge_at) WHERE purge_at IS NOT NULL;
CREATE INDEX messages_payload_until ON messages (payload_until) WHERE payload_until IS NOT NULL;

-- In generations of twelve hours: the index that inserts go to stays small, and a generation is dropped as a whole.
CREATE TABLE idempotency (
  generation integer NOT NULL,
  app_id     text COLLATE "C" NOT NULL,
  key        bytea NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  digest     bytea NOT NULL,
  PRIMARY KEY (app_id, key, generation)
) PARTITION BY RANGE (generation);

-- The rank is the row's queue within the lane, as on SQLite: 0 the ordered line, 1 an ordered row that waits for its deliver_at, from 2 on by
-- priority and then first attempts before retries. It is generated, so that a reset typed as SQL moves the row too.
CREATE SEQUENCE delivery_seq;
CREATE TABLE webhook_deliveries (
  seq               bigint NOT NULL DEFAULT nextval('delivery_seq'),
  id                text COLLATE "C" NOT NULL,
  app_id            text COLLATE "C" NOT NULL,
  webhook_id        text COLLATE "C" NOT NULL,
  message_id        text COLLATE "C" NOT NULL,
  session_id        text,
  event_type        text NOT NULL,
  target_url        text NOT NULL,
  status            text COLLATE "C" NOT NULL DEFAULT 'pending',
  dead_reason       text,
  attempt_count     integer NOT NULL DEFAULT 0,
  max_attempts      integer,
  priority          smallint NOT NULL DEFAULT 1 CHECK (priority BETWEEN 0 AND 2),
  ordered           boolean NOT NULL DEFAULT false,
  deferred          boolean NOT NULL DEFAULT false,
  next_retry_at     bigint,
  last_attempted_at bigint,
  received_at       bigint NOT NULL,
  delivered_at      bigint,
  error_detail      text,
  age_from          bigint,
  stalls            integer NOT NULL DEFAULT 0,
  manual            boolean NOT NULL DEFAULT false,
  purge_at          bigint,
  purge_day         integer NOT NULL DEFAULT ${KEPT_DAY},
  discarded_at      bigint,
  rank              smallint GENERATED ALWAYS AS (
    CASE WHEN NOT ordered THEN 2 + priority * 2 + (attempt_count > 0)::int
         WHEN deferred AND attempt_count = 0 THEN 1
         ELSE 0 END
  ) STORED
) PARTITION BY LIST (status);

CREATE TABLE webhook_deliveries_live PARTITION OF webhook_deliveries FOR VALUES IN ('pending', 'failed')
  WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX deliveries_live_seq ON webhook_deliveries_live (seq);
-- Waiting rows by lane. No next_retry_at means due now.
CREATE INDEX deliveries_live_due ON webhook_deliveries_live (webhook_id, rank, coalesce(next_retry_at, 0), seq);
CREATE INDEX deliveries_live_line ON webhook_deliveries_live (webhook_id, seq) WHERE rank = 0;

CREATE TABLE webhook_deliveries_done PARTITION OF webhook_deliveries FOR VALUES IN ('delivered', 'dead')
  PARTITION BY RANGE (purge_day);
CREATE INDEX deliveries_done_seq ON webhook_deliveries_done (seq);
CREATE INDEX deliveries_done_endpoint ON webhook_deliveries_done (webhook_id, seq);
CREATE INDEX deliveries_done_dead ON webhook_deliveries_done (app_id, seq) WHERE status = 'dead';
CREATE INDEX deliveries_done_dead_seq ON webhook_deliveries_done (seq) WHERE status = 'dead';
CREATE TABLE webhook_deliveries_kept PARTITION OF webhook_deliveries_done FOR VALUES FROM (${KEPT_DAY}) TO (MAXVALUE);

CREATE INDEX deliveries_id ON webhook_deliveries (id);
CREATE INDEX deliveries_message ON webhook_deliveries (message_id);

CREATE SEQUENCE attempt_seq;
CREATE TABLE attempts (
  seq                bigint NOT NULL DEFAULT nextval('attempt_seq'),
  id                 text COLLATE "C" NOT NULL,
  delivery_id        text COLLATE "C" NOT NULL,
  webhook_id         text COLLATE "C" NOT NULL,
  message_id         text COLLATE "C" NOT NULL,
  attempt_number     integer NOT NULL,
  manual             boolean NOT NULL DEFAULT false,
  status             text COLLATE "C" NOT NULL,
  url                text NOT NULL,
  response_status    integer,
  response_body      bytea,
  response_truncated boolean NOT NULL,
  error              text,
  started_at         bigint NOT NULL,
  duration_ms        bigint NOT NULL,
  purge_day          integer NOT NULL DEFAULT ${LIVE_DAY}
) PARTITION BY RANGE (purge_day);
CREATE INDEX attempts_delivery ON attempts (delivery_id, seq);
CREATE INDEX attempts_endpoint ON attempts (webhook_id, seq);
CREATE TABLE attempts_live PARTITION OF attempts FOR VALUES FROM (${LIVE_DAY}) TO (${LIVE_DAY + 1});
CREATE TABLE attempts_kept PARTITION OF attempts FOR VALUES FROM (${KEPT_DAY}) TO (MAXVALUE);

CREATE SEQUENCE task_seq;
CREATE TABLE tasks (
  seq        bigint PRIMARY KEY DEFAULT nextval('task_seq'),
  id         text COLLATE "C" NOT NULL UNIQUE,
  org_id     text COLLATE "C" NOT NULL,
  action     text NOT NULL,
  type       text NOT NULL,
  filter     text NOT NULL,
  status     text COLLATE "C" NOT NULL,
  data       text,
  total      bigint NOT NULL,
  done       bigint NOT NULL,
  changed    bigint NOT NULL,
  cursor     bigint NOT NULL,
  up_to      bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX tasks_org ON tasks (org_id, seq);
CREATE INDEX tasks_running ON tasks (seq) WHERE status = 'running';

-- A process that delivers, with a lease by this database's clock. An id is never used again.
CREATE TABLE workers (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lease_until timestamptz NOT NULL,
  name        text COLLATE "C" NOT NULL
);

-- sending and since: the owner's fetched deliveries, and when each was fetched (negative: it has not started). They were fetched under
-- sending_token; when the lane has another token, they are attempts of unknown outcome.
CREATE SEQUENCE lane_tokens;
CREATE TABLE lanes (
  id            text COLLATE "C" PRIMARY KEY,
  app_id        text COLLATE "C" NOT NULL,
  owner         bigint NOT NULL DEFAULT 0,
  token         bigint NOT NULL DEFAULT 0,
  ready_at      bigint NOT NULL DEFAULT ${NEVER},
  sending_token bigint NOT NULL DEFAULT 0,
  sending       bigint[] NOT NULL DEFAULT '{}',
  since         bigint[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE lane_wakes (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lane_id text COLLATE "C" NOT NULL,
  due_at  bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- An id in the program's format: the time of another id, and 74 random bits.
CREATE FUNCTION posthorn_id(prefix text, follows text) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT prefix || '_' || left(split_part(follows, '_', 2), 7) || left(replace(gen_random_uuid()::text, '-', ''), 20)
$$;

${revive("CREATE", "")}CREATE TRIGGER deliveries_revived BEFORE UPDATE OF status ON webhook_deliveries_done FOR EACH ROW
  WHEN (OLD.status IN ('dead', 'delivered') AND NEW.status IN ('pending', 'failed'))
  EXECUTE FUNCTION posthorn_revive();
`

/** See `GateUpdate`. */
const GATE_FENCE = `
ALTER TABLE endpoints
  ADD COLUMN gate_epoch integer NOT NULL DEFAULT 0,
  ADD COLUMN gate_token bigint NOT NULL DEFAULT 0,
  ADD COLUMN gate_revision integer NOT NULL DEFAULT 0;
`

/** See `Protection`. The breaker's time is a column of its own, since queries compare it. */
const PROTECTION = `
ALTER TABLE endpoints ADD COLUMN breaker_until bigint CHECK (${isTime("breaker_until")}), ADD COLUMN protection text,
  ADD COLUMN disabled_at bigint CHECK (${isTime("disabled_at")}), ADD COLUMN disabled_reason text;
${VIEW_OF_WAITS_WITH_BREAKER}
${LANE_FUNCTIONS}`

/** Hourly sums of attempts, with the buckets of `LATENCY_BOUNDS_MS`. The free space is for updates that change no index. */
const ROLLUPS = `
CREATE TABLE attempt_rollups (
  webhook_id      text COLLATE "C" NOT NULL,
  hour            bigint NOT NULL,
  event_type      text COLLATE "C" NOT NULL,
  attempt_number  smallint NOT NULL,
  app_id          text COLLATE "C" NOT NULL,
  attempts        bigint NOT NULL,
  succeeded       bigint NOT NULL,
  dead            bigint NOT NULL,
  no_response     bigint NOT NULL,
  bytes_out       bigint NOT NULL,
  bytes_in        bigint NOT NULL,
  duration_ms     bigint NOT NULL,
  latency_50      bigint NOT NULL,
  latency_100     bigint NOT NULL,
  latency_250     bigint NOT NULL,
  latency_500     bigint NOT NULL,
  latency_1000    bigint NOT NULL,
  latency_2500    bigint NOT NULL,
  latency_5000    bigint NOT NULL,
  latency_10000   bigint NOT NULL,
  latency_30000   bigint NOT NULL,
  latency_slower  bigint NOT NULL,
  last_success_at bigint,
  PRIMARY KEY (webhook_id, hour, event_type, attempt_number)
) WITH (fillfactor = 70);
CREATE INDEX attempt_rollups_app ON attempt_rollups (app_id, hour);
CREATE INDEX attempt_rollups_hour ON attempt_rollups (hour);
`

/**
 * For the health of endpoints. The index has the retries of a lane by age; a delivery that succeeds at once is never in it. By the time and
 * not by `seq`: for the order of `seq` the planner read the index of all lanes (12 s for 250 endpoints with 200 000 waiting rows).
 */
const HEALTH = `
ALTER TABLE endpoints ADD COLUMN paused_at bigint CHECK (${isTime("paused_at")});
CREATE INDEX deliveries_live_retrying ON webhook_deliveries_live (webhook_id, received_at) WHERE attempt_count > 0;
`

/** For the survey: dead letters are counted in the index alone. */
const DEAD_REASONS =
  "CREATE INDEX deliveries_done_dead_reason ON webhook_deliveries_done (app_id, dead_reason, received_at) WHERE status = 'dead' AND discarded_at IS NULL"

/** The age of a dead letter begins with its death. */
const DEATHS = `
ALTER TABLE webhook_deliveries ADD COLUMN dead_at bigint;
DROP INDEX deliveries_done_dead_reason;
CREATE INDEX deliveries_done_dead_reason ON webhook_deliveries_done (app_id, dead_reason, dead_at, last_attempted_at, received_at) WHERE status = 'dead' AND discarded_at IS NULL;
`

/** For the dead letters of an endpoint. */
const DEAD_OF_ENDPOINT =
  "CREATE INDEX deliveries_done_dead_endpoint ON webhook_deliveries_done (webhook_id, seq) WHERE status = 'dead' AND discarded_at IS NULL"

/** The ages of deliveries at the start of their attempts. `aged` counts the attempts that are in them: programs before this do not add any. */
const ATTEMPT_AGES = `
ALTER TABLE attempt_rollups ADD COLUMN aged bigint NOT NULL DEFAULT 0,
  ADD COLUMN age_min_ms bigint, ADD COLUMN age_max_ms bigint;
`

/** As `posthorn_transport`. */
export const isRelay = (url: string) => `${url} ~* '^\\s*relay:'`

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

export interface Migration {
  readonly sql: string
  /** Programs without this migration still work on the schema, as in a rolling upgrade. */
  readonly additive: boolean
}

export const MIGRATIONS: readonly Migration[] = [
  { sql: TABLES, additive: false },
  { sql: VIEWS, additive: true },
  { sql: WORKER_EPOCHS, additive: true },
  { sql: SUBSCRIPTIONS, additive: true },
  // A revived delivery is not handed over.
  { sql: HANDOFF + revive("CREATE OR REPLACE", NOT_HANDED), additive: true },
  // A delivery whose age ended before this time, while the endpoint was paused or disabled, gets an attempt first.
  { sql: "ALTER TABLE endpoints ADD COLUMN resumed_at bigint", additive: true },
  { sql: revive("CREATE OR REPLACE", NOT_HANDED, GIVEN_DUE) + VIEWS_WITH_RESULT, additive: true },
  // Svix's `version` of an endpoint: stored for its clients, without an effect.
  { sql: "ALTER TABLE endpoints ADD COLUMN api_version int NOT NULL DEFAULT 1", additive: true },
  // Only the step after every migration, which binds functions to their schema.
  { sql: "", additive: true },
  // A dated row waits for a date of the wall clock, with rank 1; see the SQLite store's schema.
  { sql: "ALTER TABLE webhook_deliveries ADD COLUMN dated boolean NOT NULL DEFAULT false", additive: true },
  // Was a version of a function that LANE_FUNCTIONS replaced.
  { sql: "", additive: true },
  { sql: VIEW_OF_WAITS, additive: true },
  // Handoffs need the newest version of the endpoint, so a typed change raises it, too.
  { sql: VERSIONS, additive: false },
  { sql: GATE_FENCE, additive: true },
  { sql: LANE_TRANSPORTS + LANE_FUNCTIONS, additive: false },
  { sql: PROTECTION, additive: true },
  { sql: ROLLUPS, additive: true },
  { sql: HEALTH, additive: true },
  { sql: DEAD_REASONS, additive: true },
  { sql: ATTEMPT_AGES, additive: true },
  // The trace context in which a message was created; see `core/traceparent.ts`.
  { sql: "ALTER TABLE messages ADD COLUMN traceparent text", additive: true },
  // The request that a source took in; see `core/inbound-request.ts`.
  { sql: "ALTER TABLE messages ADD COLUMN inbound text", additive: true },
  { sql: RELAY, additive: true },
  { sql: DEATHS, additive: true },
  // The phases of an attempt; see `core/attempt-timing.ts`.
  { sql: "ALTER TABLE attempts ADD COLUMN timing text", additive: true },
  { sql: NAMES, additive: true },
  { sql: DEAD_OF_ENDPOINT, additive: true },
]
