/**
 * What the schedule does inside the database. A turn is one statement to the client and several inside: each of them sees what
 * was committed while the one before waited for its locks, which a single statement's snapshot would not.
 *
 * Nothing here can deadlock. Whoever waits for lanes (a turn, a reap, a fetch, a settle) asks for all of them at once, in order of
 * id; what a turn takes after that it takes with SKIP LOCKED. A worker's own row is locked before any lane.
 */

/** How many wakes one turn folds. */
const MOST_WAKES = 2000
/** How many lanes beyond those asked for are looked at, so that every application with a lane among them gets its turn. */
const WIDTH = 100

/** `never` is the time of a lane that has nothing to do. */
export const scheduleFunctions = (never: string): string => `
-- Goes up when a worker does not know how a turn of it ended: one that arrives late is then refused.
ALTER TABLE workers ADD COLUMN epoch integer NOT NULL DEFAULT 0;

-- Renews a worker's lease, also one that ran out, as long as nobody reaped it; registers a new one if somebody did.
CREATE FUNCTION posthorn_renew(
  me bigint, called text, lease interval,
  OUT worker bigint, OUT lapsed boolean, OUT others integer, OUT reapable boolean
) LANGUAGE plpgsql AS $$
BEGIN
  SELECT id, lease_until < clock_timestamp() INTO worker, lapsed FROM workers WHERE id = me FOR NO KEY UPDATE;
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

-- Sets free what dead workers had. They go first: a turn holds its worker's row, so that every lane they took is seen afterwards.
CREATE FUNCTION posthorn_free(dead bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM workers WHERE id = ANY (dead);
  WITH held AS (
    SELECT id FROM lanes WHERE owner = ANY (dead) ORDER BY id FOR NO KEY UPDATE
  )
  UPDATE lanes SET owner = 0, token = nextval('lane_tokens'), ready_at = 0 FROM held WHERE lanes.id = held.id;
END $$;

CREATE FUNCTION posthorn_reap() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  dead bigint[] := ARRAY(
    SELECT id FROM workers WHERE lease_until < clock_timestamp() ORDER BY id FOR UPDATE SKIP LOCKED
  );
BEGIN
  IF dead <> '{}' THEN
    PERFORM posthorn_free(dead);
  END IF;
  RETURN cardinality(dead);
END $$;

-- What the worker has, when it does not know how its last turn ended.
CREATE FUNCTION posthorn_recount(
  me bigint,
  OUT at_epoch integer, OUT claimed text[], OUT apps text[], OUT tokens bigint[]
) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE workers SET epoch = epoch + 1 WHERE id = me RETURNING epoch INTO at_epoch;
  SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(app_id), '{}'), coalesce(array_agg(token), '{}')
    INTO claimed, apps, tokens
    FROM lanes WHERE owner = me;
END $$;

-- One turn of a worker: it gives lanes back, folds wakes into lanes, and takes lanes whose time has come: at most "most", none and
-- nothing else but the giving back if that is null. Those that it already has and that were woken come again, with their token.
-- It takes from the lanes that are proposed to it, and from those whose time came more than "behind" ago. Whoever proposes is told
-- how things stand with all the lanes that the turn had to do with; nobody does if "proposed" is null.
-- The planner's settings: a few rows are looked up by id, whatever it believes. A plan made while the table was small, or for a
-- LIMIT that it does not know, would read the whole of it.
CREATE FUNCTION posthorn_turn(
  me bigint, my_epoch integer, at bigint, most integer,
  given text[], given_tokens bigint[], given_dues bigint[],
  proposed text[], behind bigint,
  OUT alive boolean, OUT claimed text[], OUT apps text[], OUT tokens bigint[], OUT woken integer,
  OUT next_at bigint, OUT waiting boolean, OUT unfinished boolean,
  OUT told text[], OUT told_apps text[], OUT told_times bigint[]
) LANGUAGE plpgsql
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
  folded text[] := '{}';
  folded_dues bigint[];
BEGIN
  PERFORM FROM workers WHERE id = me AND epoch = my_epoch FOR SHARE;
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
    SELECT coalesce(array_agg(lane_id), '{}'), coalesce(array_agg(due_at), '{}') INTO folded, folded_dues FROM lane;
  END IF;

  -- Whoever has the lane, and whatever time it has: a fold that looked first, and locked only then, lost wakes.
  IF given <> '{}' OR folded <> '{}' THEN
    PERFORM FROM lanes WHERE id = ANY (given || folded) ORDER BY id FOR NO KEY UPDATE;
  END IF;
  IF folded <> '{}' THEN
    UPDATE lanes SET ready_at = w.due_at
      FROM unnest(folded, folded_dues) AS w(id, due_at)
     WHERE lanes.id = w.id AND lanes.ready_at > w.due_at;
  END IF;
  -- Not its head's due time but now at the earliest: "oldest first" let one backlog keep every turn.
  IF given <> '{}' THEN
    UPDATE lanes SET owner = 0, ready_at = greatest(at, least(lanes.ready_at, g.due_at))
      FROM unnest(given, given_tokens, given_dues) AS g(id, token, due_at)
     WHERE lanes.id = g.id AND lanes.token = g.token;
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
      UPDATE lanes SET owner = me, token = nextval('lane_tokens'), ready_at = ${never}
        FROM taken WHERE lanes.id = taken.id
      RETURNING lanes.id, app_id, token
    )
    SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(app_id), '{}'), coalesce(array_agg(token), '{}')
      INTO claimed, apps, tokens FROM granted;
  END IF;
  IF most IS NOT NULL THEN
    WITH mine AS (
      SELECT id FROM lanes WHERE owner = me AND ready_at <= at FOR NO KEY UPDATE SKIP LOCKED
    ), again AS (
      UPDATE lanes SET ready_at = ${never} FROM mine WHERE lanes.id = mine.id
      RETURNING lanes.id, app_id, token
    )
    SELECT claimed || array_agg(id), apps || array_agg(app_id), tokens || array_agg(token), count(*)
      INTO claimed, apps, tokens, woken FROM again;
  END IF;

  next_at := nullif(least(
    (SELECT ready_at FROM lanes WHERE owner = 0 AND ready_at > at ORDER BY owner, ready_at LIMIT 1),
    (SELECT ready_at FROM lanes WHERE owner = me AND ready_at > at ORDER BY owner, ready_at LIMIT 1)
  ), ${never});
  waiting := EXISTS (SELECT FROM lanes WHERE owner = 0 AND ready_at <= at);
  -- Wakes that another worker is folding right now, or that were too many; own lanes that were locked.
  unfinished := EXISTS (SELECT FROM lane_wakes) OR EXISTS (SELECT FROM lanes WHERE owner = me AND ready_at <= at);

  IF proposed IS NOT NULL THEN
    SELECT coalesce(array_agg(id), '{}'), array_agg(app_id), array_agg(CASE WHEN owner = 0 THEN nullif(ready_at, ${never}) END)
      INTO told, told_apps, told_times
      FROM lanes WHERE id = ANY (given || proposed || claimed);
  END IF;
END $$;
`
