/**
 * What the database itself saw of every outcome that was written: under which token the lane was at that moment, and whose it was. A
 * trigger notes it in the transaction that writes, which has the lane locked.
 */
import type pg from "pg"
import { expect } from "vitest"
import type { WorkerProcess } from "../support/workers.ts"

const AUDIT = `
  CREATE TABLE audit_settles (attempt_id text PRIMARY KEY, token bigint, owner bigint);
  CREATE TABLE audit_workers (id bigint PRIMARY KEY, name text);
  CREATE FUNCTION audit_settle() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN
    -- An attempt that moves to another partition comes here a second time.
    INSERT INTO audit_settles SELECT NEW.id, token, owner FROM lanes WHERE id = NEW.webhook_id ON CONFLICT DO NOTHING;
    RETURN NULL;
  END $$;
  CREATE FUNCTION audit_worker() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN
    INSERT INTO audit_workers VALUES (NEW.id, NEW.name);
    RETURN NULL;
  END $$;
  CREATE TRIGGER audit_settles AFTER INSERT ON attempts FOR EACH ROW WHEN (NEW.status <> 'unknown') EXECUTE FUNCTION audit_settle();
  CREATE TRIGGER audit_workers AFTER INSERT ON workers FOR EACH ROW EXECUTE FUNCTION audit_worker()`

export async function startAudit(client: pg.Client): Promise<void> {
  await client.query(AUDIT)
}

/** Every outcome that is in the log was written by the worker that had the lane, under the token with which it had sent the request. */
export async function checkFence(client: pg.Client, workers: readonly WorkerProcess[]): Promise<void> {
  const said = new Map<string, { readonly pid: number; readonly token: number }>()
  for (const { pid, told } of workers)
    for (const line of told) if (line.word === "settles") said.set(line.attemptId, { pid, token: line.token })
  const { rows } = await client.query(`
    SELECT s.attempt_id, s.token, w.name FROM audit_settles s LEFT JOIN audit_workers w ON w.id = s.owner`)
  expect(rows.length).toBeGreaterThan(0)
  const wrong = rows.filter(({ attempt_id, token, name }) => {
    const writer = said.get(attempt_id)
    return writer === undefined || writer.token !== Number(token) || name !== `posthorn ${writer.pid}`
  })
  expect(wrong).toEqual([])
}
