/**
 * What the schedule does inside the database. A turn is one statement to the client and several inside: each of them sees what
 * was committed before it began, which a single statement's snapshot would not.
 *
 * Nobody here waits for a lane: one that somebody has locked, for a moment or for as long as his process is frozen, is left as it is
 * and tried again. A turn that waited for one lane stopped every worker's turns, and with them every endpoint. No wake is lost by
 * it: a wake is used up only by whoever has its lane locked, and stays where it is otherwise.
 *
 * A worker's row is the one thing that is waited for, a second at most, by that worker itself and before it has locked anything. So
 * nothing here can deadlock; a fetch or a settle, which do wait for lanes, ask for all of theirs at once, in order of id. A turn has
 * its worker's row FOR KEY SHARE, beside which the lease can be renewed; whoever must know that no turn is under way, and that none
 * begins, takes it FOR UPDATE.
 */

import { lookup } from "./statement.ts"

/** How many wakes one turn folds. */
const MOST_WAKES = 2000
/** How many lanes beyond those asked for are looked at, so that every application with a lane among them gets its turn. */
const WIDTH = 100
/** How long a worker waits for its row. The client would give up after 4.5 s, and leave behind a backend that goes on waiting. */
const PATIENCE = "SET lock_timeout = '1s'"

/** `ready_at` of a lane that has nothing to do. */
export const NEVER = "9223372036854775807"

export const turnFunction = (create: string): string => `
-- One turn of a worker: it folds wakes into lanes, gives lanes back, and takes lanes whose time has come: at most "most", none and
-- nothing else but the giving back if that is null. Those that it already has and that were woken come again, with their token.
-- "kept" are lanes that it could not give back because somebody has them locked.
-- It takes from the lanes that are proposed to it, and from those whose time came more than "behind" ago. Whoever proposes is told
-- how things stand with all the lanes that the turn had to do with; nobody does if "proposed" is null.
-- The planner's settings: a few rows are looked up by id, whatever it believes. A plan made while the table was small, or for a
-- LIMIT that it does not know, would read the whole of it.
${create} FUNCTION posthorn_turn(
  me bigint, my_epoch integer, at bigint, most integer,
  given text[], given_tokens bigint[], given_dues bigint[],
  proposed text[], behind bigint,
  OUT alive boolean, OUT claimed text[], OUT apps text[], OUT tokens bigint[], OUT woken integer,
  OUT next_at bigint, OUT waiting boolean, OUT unfinished boolean,
  OUT told text[], OUT told_apps text[], OUT told_times bigint[], OUT kept text[]
) LANGUAGE plpgsql ${PATIENCE}
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
  wanted text[] := '{}';
  wanted_dues bigint[];
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
      RETURNING lane_id, due_at
    ), lane AS (
      SELECT lane_id, min(due_at) AS due_at FROM gone GROUP BY lane_id
    )
    SELECT coalesce(array_agg(lane_id), '{}'), coalesce(array_agg(due_at), '{}') INTO wanted, wanted_dues FROM lane;
  END IF;

  -- Whoever has the lane, and whatever time it has: a fold that looked first, and locked only then, lost wakes.
  IF wanted <> '{}' THEN
    SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(due_at), '{}') INTO folded, folded_dues
      FROM unnest(wanted, wanted_dues) AS w(lane_id, due_at)
      CROSS JOIN LATERAL (SELECT id FROM lanes WHERE id = w.lane_id FOR NO KEY UPDATE SKIP LOCKED) l;
    UPDATE lanes SET ready_at = w.due_at
      FROM unnest(folded, folded_dues) AS w(id, due_at)
     -- "+ 0": else the planner may take the index lanes_ready to be as good, while few lanes are ready.
     WHERE ${lookup("lanes.id", "w.id")} AND lanes.ready_at + 0 > w.due_at;
    -- What is locked keeps one wake for all that it had, behind everybody else's: at the head of the line they would, some day, be all
    -- that a turn gets to see. A lane that is no more needs none.
    IF cardinality(folded) < cardinality(wanted) THEN
      INSERT INTO lane_wakes (lane_id, due_at)
      SELECT w.lane_id, w.due_at
        FROM (SELECT * FROM unnest(wanted, wanted_dues) EXCEPT SELECT * FROM unnest(folded, folded_dues)) AS w(lane_id, due_at)
        CROSS JOIN LATERAL (SELECT FROM lanes WHERE id = w.lane_id OFFSET 0) l;
    END IF;
  END IF;

  -- Not its head's due time but now at the earliest: "oldest first" let one backlog keep every turn.
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
    -- From both ends of the line (index lanes_ready): however many lanes of one application wait, another's newest is among these.
    -- By ctid, behind OFFSET 0, and "owner + 0": else each lane would be looked up by its owner, among all that have the same one.
    -- Another may have taken it since this statement began, so it is asked for its owner again once it is locked.
    WITH line AS (
      (SELECT ctid AS place, app_id, ready_at FROM lanes
        WHERE owner = 0 AND ready_at <= at - behind ORDER BY owner, ready_at LIMIT most + ${WIDTH})
      UNION
      (SELECT ctid, app_id, ready_at FROM lanes
        WHERE owner = 0 AND ready_at <= at - behind ORDER BY owner DESC, ready_at DESC LIMIT ${WIDTH})
      UNION
      SELECT place, app_id, ready_at
        FROM (SELECT ctid AS place, app_id, owner, ready_at FROM lanes WHERE id = ANY (proposed) OFFSET 0) l
       WHERE owner = 0 AND ready_at <= at
    ), turns AS (
      SELECT place, ready_at, row_number() OVER (PARTITION BY app_id ORDER BY ready_at) AS turn FROM line
    ), taken AS (
      SELECT l.id FROM turns t JOIN lanes l ON l.ctid = t.place AND l.owner + 0 = 0 AND l.ready_at + 0 <= at
       ORDER BY t.turn, t.ready_at LIMIT most FOR NO KEY UPDATE OF l SKIP LOCKED
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
      SELECT id FROM lanes WHERE owner = me AND ready_at <= at FOR NO KEY UPDATE SKIP LOCKED
    ), again AS (
      UPDATE lanes SET ready_at = ${NEVER} FROM mine WHERE ${lookup("lanes.id", "mine.id")}
      RETURNING lanes.id, app_id, token
    )
    SELECT claimed || array_agg(id), apps || array_agg(app_id), tokens || array_agg(token), count(*)
      INTO claimed, apps, tokens, woken FROM again;
  END IF;

  next_at := nullif(least(
    (SELECT ready_at FROM lanes WHERE owner = 0 AND ready_at > at ORDER BY owner, ready_at LIMIT 1),
    (SELECT ready_at FROM lanes WHERE owner = me AND ready_at > at ORDER BY owner, ready_at LIMIT 1)
  ), ${NEVER});
  waiting := EXISTS (SELECT FROM lanes WHERE owner = 0 AND ready_at <= at);
  -- Wakes that another worker is folding right now, that were too many, or whose lanes were locked; own lanes that were locked.
  unfinished := EXISTS (SELECT FROM lane_wakes) OR EXISTS (SELECT FROM lanes WHERE owner = me AND ready_at <= at);

  IF proposed IS NOT NULL THEN
    SELECT coalesce(array_agg(id), '{}'), array_agg(app_id), array_agg(CASE WHEN owner = 0 THEN nullif(ready_at, ${NEVER}) END)
      INTO told, told_apps, told_times
      FROM lanes WHERE id = ANY (given || proposed || claimed);
  END IF;
END $$;
`

export const LANE_FUNCTIONS = `
-- Goes up when a worker does not know how a turn of it ended: one that arrives late is then refused.
ALTER TABLE workers ADD COLUMN epoch integer NOT NULL DEFAULT 0;

-- Renews a worker's lease, also one that ran out, as long as nobody reaped it; registers a new one if somebody did. A worker that was
-- reaped and whose lanes are not all free yet has a lease until '-infinity'.
CREATE FUNCTION posthorn_renew(
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

-- Sets free what dead workers had, and says whether that was all. From now on their turns are refused. One that is still under way
-- may yet take lanes, and some may be locked: so a worker's row goes only when it has no turn and no lane any more.
CREATE FUNCTION posthorn_free(dead bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  quiet bigint[];
BEGIN
  UPDATE workers SET lease_until = '-infinity' WHERE id = ANY (dead);
  WITH held AS (
    SELECT id FROM lanes WHERE owner = ANY (dead) FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE lanes SET owner = 0, token = nextval('lane_tokens'), ready_at = 0 FROM held WHERE lanes.id = held.id;
  quiet := ARRAY(SELECT id FROM workers WHERE id = ANY (dead) FOR UPDATE SKIP LOCKED);
  DELETE FROM workers WHERE id = ANY (quiet) AND NOT EXISTS (SELECT FROM lanes WHERE owner = workers.id);
  RETURN NOT EXISTS (SELECT FROM workers WHERE id = ANY (dead));
END $$;

-- One that another is reaping, or that is renewing its lease, is left to that.
CREATE FUNCTION posthorn_reap() RETURNS boolean LANGUAGE plpgsql ${PATIENCE} AS $$
BEGIN
  RETURN posthorn_free(ARRAY(
    SELECT id FROM workers WHERE lease_until < clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED
  ));
END $$;

CREATE FUNCTION posthorn_end(me bigint) RETURNS boolean LANGUAGE plpgsql ${PATIENCE} AS $$
BEGIN
  RETURN posthorn_free(ARRAY(SELECT id FROM workers WHERE id = me FOR NO KEY UPDATE SKIP LOCKED));
END $$;

-- What the worker has, when it does not know how its last turn ended.
CREATE FUNCTION posthorn_recount(
  me bigint,
  OUT at_epoch integer, OUT claimed text[], OUT apps text[], OUT tokens bigint[]
) LANGUAGE plpgsql ${PATIENCE} AS $$
BEGIN
  PERFORM FROM workers WHERE id = me FOR UPDATE;
  UPDATE workers SET epoch = epoch + 1 WHERE id = me AND lease_until > '-infinity' RETURNING epoch INTO at_epoch;
  SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(app_id), '{}'), coalesce(array_agg(token), '{}')
    INTO claimed, apps, tokens
    FROM lanes WHERE owner = me;
END $$;

${turnFunction("CREATE")}`
