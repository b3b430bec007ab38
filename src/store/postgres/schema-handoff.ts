/**
 * Migrations for handoffs to open lanes (decisions 0012 and 0018): the mark in a delivery's row, and an endpoint's version that every change
 * raises.
 */
import { VIEWS_OF_HANDED } from "./schema-views.ts"

export const HANDOFF = `
-- The mark of a handed delivery: the token of the claim, negative if the delivery has not started. It is the fence of its settle. When the lane
-- has another token, the row is an attempt of unknown outcome.
ALTER TABLE webhook_deliveries ADD COLUMN handed_token bigint;

CREATE TABLE application_routes (
  app_id  text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL
) WITH (fillfactor = 50);

-- For every change that affects the routing of messages. Ordered by application, so that no two transactions deadlock.
CREATE FUNCTION posthorn_reroute() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  apps text[];
BEGIN
  IF TG_OP = 'INSERT' THEN
    SELECT array_agg(DISTINCT app_id) INTO apps FROM after;
  ELSIF TG_OP = 'DELETE' THEN
    SELECT array_agg(DISTINCT app_id) INTO apps FROM before;
  ELSE
    SELECT array_agg(DISTINCT changed.app_id) INTO apps
      FROM before b JOIN after a USING (id) CROSS JOIN LATERAL unnest(ARRAY[a.app_id, b.app_id]) AS changed(app_id)
     WHERE (b.app_id, b.url, b.event_types, b.channels, b.ordered, b.disabled, b.paused, b.deleted_at, b.version)
           IS DISTINCT FROM (a.app_id, a.url, a.event_types, a.channels, a.ordered, a.disabled, a.paused, a.deleted_at, a.version);
  END IF;
  INSERT INTO application_routes (app_id, version)
  SELECT app_id, 1 FROM unnest(apps) AS changed(app_id) ORDER BY app_id
  ON CONFLICT (app_id) DO UPDATE SET version = application_routes.version + 1;
  RETURN NULL;
END $$;
CREATE TRIGGER endpoints_reroute_insert AFTER INSERT ON endpoints REFERENCING NEW TABLE AS after
  FOR EACH STATEMENT EXECUTE FUNCTION posthorn_reroute();
CREATE TRIGGER endpoints_reroute_delete AFTER DELETE ON endpoints REFERENCING OLD TABLE AS before
  FOR EACH STATEMENT EXECUTE FUNCTION posthorn_reroute();
CREATE TRIGGER endpoints_reroute_update AFTER UPDATE ON endpoints REFERENCING OLD TABLE AS before NEW TABLE AS after
  FOR EACH STATEMENT EXECUTE FUNCTION posthorn_reroute();
${VIEWS_OF_HANDED}`

/** Drops the version of each application: accepting messages compares the version of each endpoint. */
export const VERSIONS = `
DROP TRIGGER endpoints_reroute_insert ON endpoints;
DROP TRIGGER endpoints_reroute_delete ON endpoints;
DROP TRIGGER endpoints_reroute_update ON endpoints;
DROP FUNCTION posthorn_reroute();
DROP TABLE application_routes;

CREATE FUNCTION posthorn_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.version := OLD.version + 1;
  RETURN NEW;
END $$;
-- Columns that affect a request, without those that only delay it.
CREATE TRIGGER endpoints_version BEFORE UPDATE ON endpoints FOR EACH ROW
  WHEN (NEW.version = OLD.version AND
        (OLD.url, OLD.headers, OLD.retry_name, OLD.retry_policy, OLD.ordered, OLD.concurrency, OLD.rate_limit, OLD.disabled, OLD.paused, OLD.secrets)
        IS DISTINCT FROM
        (NEW.url, NEW.headers, NEW.retry_name, NEW.retry_policy, NEW.ordered, NEW.concurrency, NEW.rate_limit, NEW.disabled, NEW.paused, NEW.secrets))
  EXECUTE FUNCTION posthorn_version();
`
