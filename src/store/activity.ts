/** Since when deliveries wait for an endpoint, and its last success: the texts that both stores share. */

/** Queues of first attempts: the ordered line, those of it that have a time of their own, then one for each priority. */
export const FIRST_ATTEMPT_RANKS = [0, 1, 2, 4, 6] as const
/** All queues of a lane: those of retries have the odd numbers. */
export const RANKS = [0, 1, 2, 3, 4, 5, 6, 7] as const

/**
 * `ids` is a table with the column `id`. Each of `oldest` selects, for the endpoint `i.id`, the time since which the first row of a queue
 * waits: one probe of an index, regardless of the length of the lane. The last success is in the newest hour that has one.
 */
export function selectActivity(ids: string, oldest: readonly string[]): string {
  return `
    SELECT i.id,
           (SELECT min(w.at) FROM (${oldest.map((one) => `SELECT q.at FROM (${one}) q`).join(" UNION ALL ")}) w) AS oldest_waiting_at,
           (SELECT max(r.last_success_at) FROM attempt_rollups r
             WHERE r.webhook_id = i.id AND r.hour = (
               SELECT n.hour FROM attempt_rollups n
                WHERE n.webhook_id = i.id AND n.last_success_at IS NOT NULL ORDER BY n.hour DESC LIMIT 1
             )) AS last_success_at
      FROM ${ids} i`
}
