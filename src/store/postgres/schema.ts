/**
 * The tables on PostgreSQL. Names, columns and times (whole milliseconds since 1970 UTC) are those of the SQLite store, so that an
 * operator's SQL works on both. What differs is what many processes need:
 *
 * - `webhook_deliveries` is partitioned: what is live is small and hot; what is finished lies by the day on which it may go, so that
 *   retention drops tables instead of deleting rows. `attempts` likewise: those of live deliveries, then by the day of their delivery.
 * - `lanes` has a row for each endpoint: who owns it, with which token, when it is ready, and what is being sent for it. A send
 *   never touches it (64 senders to one endpoint: 1 014/s when it did, 4 462/s when it appends to `lane_wakes`).
 * - Ids sort by their bytes whatever the database's language: by time, as on SQLite, and faster than by a dictionary's rules.
 */
import { LANE_FUNCTIONS, LANE_TRANSPORTS, NEVER, WORKER_EPOCHS } from "./lane-functions.ts"
import { HANDING, VERSIONS } from "./schema-handoff.ts"
import { SUBSCRIPTIONS } from "./schema-subscriptions.ts"
import { VIEW_OF_WAITS, VIEWS, VIEWS_WITH_RESULT } from "./schema-views.ts"

/** Finished and kept for good. */
export const KEPT_DAY = 1_000_000
/** Of an attempt whose delivery is not finished. */
export const LIVE_DAY = 0

/** `dueAt` is what a typed reset makes of next_retry_at. */
const revive = (create: string, more: string, dueAt = "NULL") => `
-- However a finished delivery comes back to life, by Posthorn's retry or by the seeds' reset typed by an operator, it stands where its
-- endpoint has it now, its attempts stay with it, and its lane is woken. A typed reset (age_from left alone) also sheds what the
-- finished life left behind, and its age starts anew.
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

/** Set in the same statement, it stays. */
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
-- With the deleted ones: what waits for those is called off with their application.
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

-- Small documents of a tenant's. By name before the tenant: a key says by itself whose it is.
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

-- By generations of twelve hours: the index that inserts go to stays small, and whole generations are dropped.
CREATE TABLE idempotency (
  generation integer NOT NULL,
  app_id     text COLLATE "C" NOT NULL,
  key        bytea NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  digest     bytea NOT NULL,
  PRIMARY KEY (app_id, key, generation)
) PARTITION BY RANGE (generation);

-- The row that is retried. For rank see the SQLite store's schema: 0 an ordered line, 1 an ordered row that waits for its deliver_at, from 2 on
-- priority and then first attempt before retry; generated, so that a reset typed as SQL moves the row too.
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
-- What waits, by lane. No next_retry_at is due now.
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

-- A process that delivers: it lives as long as it renews its lease, by this database's clock. An id is never used again.
CREATE TABLE workers (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lease_until timestamptz NOT NULL,
  name        text COLLATE "C" NOT NULL
);

-- sending and since: the deliveries in the owner's hands, and when each was taken (negative: taken to wait for its turn). They were
-- taken with sending_token; with another token than the lane's, they are attempts whose outcome nobody knows.
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

-- An id in the form of the program's own: the time of the one that it follows, and 74 random bits.
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

export interface Migration {
  readonly sql: string
  /** A program that does not know this migration can go on working beside one that does, as in a rolling upgrade. */
  readonly additive: boolean
}

export const MIGRATIONS: readonly Migration[] = [
  { sql: TABLES, additive: false },
  { sql: VIEWS, additive: true },
  { sql: WORKER_EPOCHS, additive: true },
  { sql: SUBSCRIPTIONS, additive: true },
  // What comes back to life is in nobody's hands.
  { sql: HANDING + revive("CREATE OR REPLACE", NOT_HANDED), additive: true },
  // An age that ended before this time, while the endpoint was paused or disabled, gives its delivery an attempt first.
  { sql: "ALTER TABLE endpoints ADD COLUMN resumed_at bigint", additive: true },
  { sql: revive("CREATE OR REPLACE", NOT_HANDED, GIVEN_DUE) + VIEWS_WITH_RESULT, additive: true },
  // Svix's `version` of an endpoint: kept for its clients, and without an effect.
  { sql: "ALTER TABLE endpoints ADD COLUMN api_version int NOT NULL DEFAULT 1", additive: true },
  // Nothing but what follows every migration: the functions are bound to their schema.
  { sql: "", additive: true },
  // A dated row waits for a date by the wall clock, with the rank 1 of the rows that wait to join; see the SQLite store's schema.
  { sql: "ALTER TABLE webhook_deliveries ADD COLUMN dated boolean NOT NULL DEFAULT false", additive: true },
  // Was a version of a function that LANE_FUNCTIONS replaced.
  { sql: "", additive: true },
  { sql: VIEW_OF_WAITS, additive: true },
  // An open lane is handed deliveries only while its session knows the newest version, so a typed change raises it too.
  { sql: VERSIONS, additive: false },
  { sql: GATE_FENCE, additive: true },
  { sql: LANE_TRANSPORTS + LANE_FUNCTIONS, additive: false },
]
