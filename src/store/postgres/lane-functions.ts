/**
 * The SQL functions of the schedule. A claim round is one statement to the client and several inside the function: each of them sees
 * what was committed before it began, which one statement's snapshot would not.
 *
 * No function waits for a lane. A lane that another transaction has locked is skipped and tried again, since one frozen process would
 * otherwise stop every worker's claims. Its wake stays: a wake is deleted only under the lane's lock.
 *
 * A worker waits only for its own row, a second at most, before it has locked anything, so nothing here can deadlock; a fetch or a settle
 * locks all its lanes at once, in order of id. A claim round holds its worker's row FOR KEY SHARE, beside which the lease can be
 * renewed. FOR UPDATE waits for the round in flight and keeps the next one out.
 */

import { lookup } from "./statement.ts"

/** The most wakes that one claim round folds. */
const MOST_WAKES = 2000
/** How many lanes beyond those asked for are considered, so that every application among them gets its turn. */
const WIDTH = 100
/** How long a worker waits for its row. The client gives up after 4.5 s, and would leave a waiting backend behind. */
const PATIENCE = "SET lock_timeout = '1s'"

/** `ready_at` of a lane that has nothing to do. */
export const NEVER = "9223372036854775807"

/** Raised when a worker does not know the result of a claim round, so that a round that arrives late is refused. */
export const WORKER_EPOCHS = "ALTER TABLE workers ADD COLUMN epoch integer NOT NULL DEFAULT 0"

/** Each lane has the transport of its endpoint's URL, so that a claim reads only lanes that its worker can serve. */
export const LANE_TRANSPORTS = `
-- As \`transportOf\` in core/transport-kind.ts.
CREATE FUNCTION posthorn_transport(url text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN url ~* '^\\s*relay:' THEN 'relay' ELSE 'http' END
$$;

ALTER TABLE lanes ADD COLUMN transport text COLLATE "C" NOT NULL DEFAULT 'http';
UPDATE lanes SET transport = posthorn_transport(e.url) FROM endpoints e WHERE e.id = lanes.id AND posthorn_transport(e.url) <> 'http';
DROP INDEX IF EXISTS lanes_ready;
-- A claim reads the first entries of lanes_free for each transport (0.5 ms at 100 000 due lanes). Each lane is in one of the two.
CREATE INDEX lanes_free ON lanes (transport, ready_at) WHERE owner = 0;
CREATE INDEX lanes_owned ON lanes (owner, ready_at) WHERE owner <> 0;

-- The claim round that folds such a wake reads the transport of the endpoint's URL again. A change of the endpoint never waits for the lane.
ALTER TABLE lane_wakes ADD COLUMN moved boolean NOT NULL DEFAULT false;
CREATE FUNCTION posthorn_move_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO lane_wakes (lane_id, due_at, moved) VALUES (NEW.id, ${NEVER}, true);
  RETURN NULL;
END $$;
CREATE TRIGGER endpoints_transport_new AFTER INSERT ON endpoints FOR EACH ROW
  WHEN (posthorn_transport(NEW.url) <> 'http') EXECUTE FUNCTION posthorn_move_lane();
CREATE TRIGGER endpoints_transport AFTER UPDATE OF url ON endpoints FOR EACH ROW
  WHEN (posthorn_transport(NEW.url) <> posthorn_transport(OLD.url)) EXECUTE FUNCTION posthorn_move_lane();

DROP FUNCTION IF EXISTS posthorn_turn(bigint, integer, bigint, integer, text[], bigint[], bigint[], text[], bigint);
`

export const LANE_FUNCTIONS = `
-- Renews a worker's lease, also an expired one that nobody reaped yet; else registers a new worker. A reaped worker that still owns
-- lanes has a lease until '-infinity'.
CREATE OR REPLACE FUNCTION posthorn_renew(
  me bigint, called text, lease interval,
  OUT worker bigint, OUT lapsed boolean, OUT others integer, OUT reapable boolean
) LANGUAGE plpgsql ${PATIENCE} AS $$
BEGIN
  SELECT id, lease_until < clock_timestamp() INTO worker, lapsed
    FROM workers WHERE id = me AND lease_until > '-infinity' FOR NO KEY UPDATE;
  IF FOUND THEN
    UPDATE workers SET lease_until = clock_timestamp() + lease WHERE id = me;
  ELSE
    lapsed := true;
    INSERT INTO workers (lease_until, name)
    VALUES (clock_timestamp() + lease, called) RETURNING id INTO worker;
  END IF;
  SELECT count(*), coalesce(bool_or(lease_until < clock_timestamp()), false) INTO others, reapable
    FROM workers WHERE id <> worker;
END $$;

-- Frees the lanes of dead workers; false when some are left. Their claim rounds are refused from now on. A round in flight may still
-- claim lanes, and some lanes may be locked, so a worker's row is deleted only when it has neither a round nor a lane.
CREATE OR REPLACE FUNCTION posthorn_free(dead bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  quiet bigint[];
BEGIN
  UPDATE workers SET lease_until = '-infinity' WHERE id = ANY (dead);
  WITH held AS (
    SELECT id FROM lanes WHERE owner = ANY (dead) AND owner <> 0 FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE lanes SET owner = 0, token = nextval('lane_tokens'), ready_at = 0 FROM held WHERE lanes.id = held.id;
  quiet := ARRAY(SELECT id FROM workers WHERE id = ANY (dead) FOR UPDATE SKIP LOCKED);
  DELETE FROM workers
   WHERE id = ANY (quiet) AND NOT EXISTS (SELECT FROM lanes WHERE owner = workers.id AND owner <> 0);
  RETURN NOT EXISTS (SELECT FROM workers WHERE id = ANY (dead));
END $$;

-- A worker that another one is reaping, or that is renewing its lease, is skipped.
CREATE OR REPLACE FUNCTION posthorn_reap() RETURNS boolean LANGUAGE plpgsql ${PATIENCE} AS $$
BEGIN
  RETURN posthorn_free(ARRAY(
    SELECT id FROM workers WHERE lease_until < clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED
  ));
END $$;

CREATE OR REPLACE FUNCTION posthorn_end(me bigint) RETURNS boolean LANGUAGE plpgsql ${PATIENCE} AS $$
BEGIN
  RETURN posthorn_free(ARRAY(SELECT id FROM workers WHERE id = me FOR NO KEY UPDATE SKIP LOCKED));
END $$;

-- The worker's lanes, for a worker that does not know the result of its last claim round.
CREATE OR REPLACE FUNCTION posthorn_recount(
  me bigint,
  OUT at_epoch integer, OUT claimed text[], OUT apps text[], OUT tokens bigint[]
) LANGUAGE plpgsql ${PATIENCE} AS $$
BEGIN
  PERFORM FROM workers WHERE id = me FOR UPDATE;
  UPDATE workers SET epoch = epoch + 1 WHERE id = me AND lease_until > '-infinity' RETURNING epoch INTO at_epoch;
  SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(app_id), '{}'), coalesce(array_agg(token), '{}')
    INTO claimed, apps, tokens
    FROM lanes WHERE owner = me AND owner <> 0;
END $$;

-- A claim round of a worker: folds wakes into lanes, releases lanes ("given"), and claims at most "most" due lanes; with null it only
-- releases. Lanes that the worker has already and that were woken are returned with their token. "kept" are releases of locked lanes.
-- It claims lanes of the transports "serves", and the endpoints "named" whatever their transport: those that are proposed, and those
-- overdue by more than "behind". With a proposer ("proposed" is not null) it returns the due times of all lanes that it touched ("told").
-- The planner's settings make it look rows up by id. A plan that was made while the table was small, or for an unknown LIMIT, would
-- read the whole table.
CREATE OR REPLACE FUNCTION posthorn_claim_round(
  me bigint, my_epoch integer, at bigint, most integer,
  given text[], given_tokens bigint[], given_dues bigint[],
  proposed text[], behind bigint, serves text[], named text[],
  OUT alive boolean, OUT claimed text[], OUT apps text[], OUT tokens bigint[], OUT woken integer,
  OUT next_at bigint, OUT waiting boolean, OUT unfinished boolean,
  OUT told text[], OUT told_apps text[], OUT told_transports text[], OUT told_times bigint[], OUT kept text[]
) LANGUAGE plpgsql ${PATIENCE}
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
  wanted text[] := '{}';
  wanted_dues bigint[];
  moving text[];
  folded text[] := '{}';
  folded_dues bigint[];
  freed text[] := '{}';
  freed_dues bigint[];
BEGIN
  PERFORM FROM workers WHERE id = me AND epoch = my_epoch AND lease_until > '-infinity' FOR KEY SHARE;
  alive := FOUND;
  IF NOT alive THEN
    RETURN;
  END IF;

  IF most IS NOT NULL THEN
    WITH gone AS (
      DELETE FROM lane_wakes
       WHERE ctid = ANY (ARRAY(SELECT ctid FROM lane_wakes ORDER BY id LIMIT ${MOST_WAKES} FOR UPDATE SKIP LOCKED))
      RETURNING lane_id, due_at, moved
    ), lane AS (
      SELECT lane_id, min(due_at) AS due_at, bool_or(moved) AS moved FROM gone GROUP BY lane_id
    )
    SELECT coalesce(array_agg(lane_id), '{}'), coalesce(array_agg(due_at), '{}'), array_agg(lane_id) FILTER (WHERE moved)
      INTO wanted, wanted_dues, moving FROM lane;
  END IF;

  -- Locked whatever their owner and time are: a fold that looked first, and locked only then, lost wakes.
  IF wanted <> '{}' THEN
    SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(due_at), '{}') INTO folded, folded_dues
      FROM unnest(wanted, wanted_dues) AS w(lane_id, due_at)
      CROSS JOIN LATERAL (SELECT id FROM lanes WHERE id = w.lane_id FOR NO KEY UPDATE SKIP LOCKED) l;
    -- A lane whose breaker is open, or that a Retry-After holds, is not due before its gate opens.
    UPDATE lanes SET ready_at = w.due_at
      FROM (
        SELECT f.id, greatest(f.due_at, e.hold_until, e.breaker_until) AS due_at
          FROM unnest(folded, folded_dues) AS f(id, due_at)
          LEFT JOIN LATERAL (SELECT hold_until, breaker_until FROM endpoints WHERE id = f.id AND deleted_at IS NULL OFFSET 0) e ON true
      ) AS w
     -- "+ 0" keeps the planner from the index on ready_at, which looks as good while few lanes are ready.
     WHERE ${lookup("lanes.id", "w.id")} AND lanes.ready_at + 0 > w.due_at;
    IF moving IS NOT NULL THEN
      UPDATE lanes SET transport = posthorn_transport(e.url)
        FROM unnest(moving) AS m(id) JOIN endpoints e ON ${lookup("e.id", "m.id")}
       WHERE ${lookup("lanes.id", "m.id")} AND m.id = ANY (folded);
    END IF;
    -- A locked lane gets one wake for all of its wakes, at the end: at the head they could become all that a round reads. A deleted lane
    -- needs none.
    IF cardinality(folded) < cardinality(wanted) THEN
      INSERT INTO lane_wakes (lane_id, due_at, moved)
      SELECT w.lane_id, w.due_at, w.lane_id = ANY (coalesce(moving, '{}'))
        FROM (SELECT * FROM unnest(wanted, wanted_dues) EXCEPT SELECT * FROM unnest(folded, folded_dues)) AS w(lane_id, due_at)
        CROSS JOIN LATERAL (SELECT FROM lanes WHERE id = w.lane_id OFFSET 0) l;
    END IF;
  END IF;

  -- Ready at its head's due time, but not before now: "oldest first" let one backlogged lane take every round.
  kept := '{}';
  IF given <> '{}' THEN
    SELECT coalesce(array_agg(l.id), '{}'), coalesce(array_agg(g.due_at), '{}') INTO freed, freed_dues
      FROM unnest(given, given_tokens, given_dues) AS g(lane_id, token, due_at)
      CROSS JOIN LATERAL (
        SELECT id FROM lanes WHERE id = g.lane_id AND lanes.token = g.token FOR NO KEY UPDATE SKIP LOCKED
      ) l;
    UPDATE lanes SET owner = 0, ready_at = greatest(at, least(lanes.ready_at, g.due_at))
      FROM unnest(freed, freed_dues) AS g(id, due_at)
     WHERE ${lookup("lanes.id", "g.id")};
    IF cardinality(freed) < cardinality(given) THEN
      kept := ARRAY(
        SELECT g.lane_id FROM unnest(given, given_tokens) AS g(lane_id, token)
          CROSS JOIN LATERAL (SELECT FROM lanes WHERE id = g.lane_id AND lanes.token = g.token OFFSET 0) l
        EXCEPT SELECT unnest(freed)
      );
    END IF;
  END IF;

  claimed := '{}'; apps := '{}'; tokens := '{}'; woken := 0;
  IF proposed IS NOT NULL THEN
    proposed := proposed || folded;
  END IF;
  IF most > 0 THEN
    -- From both ends of the index lanes_free: however many lanes of one application wait, another's newest lane is among them.
    -- By ctid, behind OFFSET 0, and "owner + 0": else the planner looks each lane up among all free lanes. Another worker may have
    -- claimed or moved it since this statement began, so owner and transport are compared again under the lock.
    WITH line AS (
      SELECT due.* FROM unnest(serves) AS s(transport) CROSS JOIN LATERAL (
        (SELECT ctid AS place, app_id, transport, ready_at FROM lanes
          WHERE owner = 0 AND lanes.transport = s.transport AND ready_at <= at - behind
          ORDER BY ready_at LIMIT most + ${WIDTH})
        UNION ALL
        (SELECT ctid, app_id, transport, ready_at FROM lanes
          WHERE owner = 0 AND lanes.transport = s.transport AND ready_at <= at - behind
          ORDER BY ready_at DESC LIMIT ${WIDTH})
      ) due
      UNION
      SELECT place, app_id, transport, ready_at
        FROM (SELECT ctid AS place, * FROM lanes WHERE id = ANY (proposed || named) OFFSET 0) l
       WHERE owner = 0 AND ready_at <= at AND (transport = ANY (serves) OR id = ANY (named))
    ), rounds AS (
      SELECT place, transport, ready_at, row_number() OVER (PARTITION BY app_id ORDER BY ready_at) AS round FROM line
    ), taken AS (
      SELECT l.id FROM rounds r
        JOIN lanes l ON l.ctid = r.place AND l.owner + 0 = 0 AND l.transport || '' = r.transport AND l.ready_at + 0 <= at
       ORDER BY r.round, r.ready_at LIMIT most FOR NO KEY UPDATE OF l SKIP LOCKED
    ), granted AS (
      UPDATE lanes SET owner = me, token = nextval('lane_tokens'), ready_at = ${NEVER}
        FROM taken WHERE ${lookup("lanes.id", "taken.id")}
      RETURNING lanes.id, app_id, token
    )
    SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(app_id), '{}'), coalesce(array_agg(token), '{}')
      INTO claimed, apps, tokens FROM granted;
  END IF;
  IF most IS NOT NULL THEN
    WITH mine AS (
      SELECT id FROM lanes WHERE owner = me AND owner <> 0 AND ready_at <= at FOR NO KEY UPDATE SKIP LOCKED
    ), again AS (
      UPDATE lanes SET ready_at = ${NEVER} FROM mine WHERE ${lookup("lanes.id", "mine.id")}
      RETURNING lanes.id, app_id, token
    )
    SELECT claimed || array_agg(id), apps || array_agg(app_id), tokens || array_agg(token), count(*)
      INTO claimed, apps, tokens, woken FROM again;
  END IF;

  next_at := nullif(least(
    (SELECT min(ready_at) FROM unnest(serves) AS s(transport) CROSS JOIN LATERAL (
       SELECT ready_at FROM lanes WHERE owner = 0 AND lanes.transport = s.transport AND ready_at > at
        ORDER BY ready_at LIMIT 1
     ) later),
    (SELECT min(ready_at) FROM lanes WHERE id = ANY (named) AND owner + 0 = 0 AND ready_at + 0 > at),
    (SELECT ready_at FROM lanes WHERE owner = me AND owner <> 0 AND ready_at > at ORDER BY owner, ready_at LIMIT 1)
  ), ${NEVER});
  waiting := EXISTS (
      SELECT FROM unnest(serves) AS s(transport) CROSS JOIN LATERAL (
        SELECT FROM lanes WHERE owner = 0 AND lanes.transport = s.transport AND ready_at <= at LIMIT 1
      ) due
    ) OR EXISTS (SELECT FROM lanes WHERE id = ANY (named) AND owner + 0 = 0 AND ready_at + 0 <= at);
  -- Wakes beyond the limit, of locked lanes, or that another worker is folding; lanes of this worker that are locked.
  unfinished := EXISTS (SELECT FROM lane_wakes)
    OR EXISTS (SELECT FROM lanes WHERE owner = me AND owner <> 0 AND ready_at <= at);

  IF proposed IS NOT NULL THEN
    SELECT coalesce(array_agg(id), '{}'), array_agg(app_id), array_agg(transport),
           array_agg(CASE WHEN owner = 0 THEN nullif(ready_at, ${NEVER}) END)
      INTO told, told_apps, told_transports, told_times
      FROM lanes WHERE id = ANY (given || proposed || claimed);
  END IF;
END $$;
`
