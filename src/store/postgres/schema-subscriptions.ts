/**
 * Endpoints by event type; '' is every type. Without it, every message read all endpoints of its application. A trigger maintains it, so that
 * older programs may change endpoints, too.
 */
export const SUBSCRIPTIONS = `
CREATE TABLE endpoint_subscriptions (
  app_id      text COLLATE "C" NOT NULL,
  event_type  text COLLATE "C" NOT NULL,
  endpoint_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (app_id, event_type, endpoint_id)
);

-- The changing session may have another search_path, and an UPDATE may name columns without changing them.
CREATE FUNCTION posthorn_subscribe() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.app_id, OLD.event_types, OLD.disabled, OLD.deleted_at)
      IS NOT DISTINCT FROM (NEW.app_id, NEW.event_types, NEW.disabled, NEW.deleted_at) THEN
    RETURN NULL;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM endpoint_subscriptions
     WHERE app_id = OLD.app_id AND event_type = ANY (coalesce(OLD.event_types, ARRAY[''])) AND endpoint_id = OLD.id;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO endpoint_subscriptions (app_id, event_type, endpoint_id)
    SELECT DISTINCT NEW.app_id, unnest(coalesce(NEW.event_types, ARRAY[''])), NEW.id
     WHERE NEW.deleted_at IS NULL AND NOT NEW.disabled;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER endpoints_subscribe AFTER INSERT OR DELETE OR UPDATE OF app_id, event_types, disabled, deleted_at ON endpoints
  FOR EACH ROW EXECUTE FUNCTION posthorn_subscribe();

INSERT INTO endpoint_subscriptions (app_id, event_type, endpoint_id)
SELECT DISTINCT app_id, unnest(coalesce(event_types, ARRAY[''])), id FROM endpoints WHERE deleted_at IS NULL AND NOT disabled;
`
