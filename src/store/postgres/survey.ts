/** A survey of the whole database. */
import { surveyStatements, toSurvey } from "../survey.ts"
import type { Operation } from "./context.ts"

const { backlog, deadLetters, endpoints } = surveyStatements({
  table: "webhook_deliveries_live",
  live: "webhook_deliveries_live d",
  queue: "d.webhook_id, d.rank",
  head: "SELECT h.seq FROM webhook_deliveries_live h WHERE h.webhook_id = q.webhook_id AND h.rank = 0 ORDER BY h.seq LIMIT 1",
  least: "least",
  greatest: "greatest",
  retriesAt: `CAST(substring(e.protection FROM '"retriesAt":(\\d{1,15})') AS bigint)`,
  agents: "(SELECT m.key, CAST(m.value AS bigint) AS value FROM jsonb_each_text(CAST($2 AS jsonb)) m) a",
  counted: "SELECT jsonb_array_elements_text(CAST($3 AS jsonb))",
  toObject: (name, value) => `CAST(json_object_agg(${name}, ${value}) AS text)`,
  digits: (number) => `lpad(CAST(${number} AS text), 16, '0')`,
})

export const survey: Operation<"survey"> = async ({ database }, now, agents = {}, counted = []) => {
  const [[queues], dead, [total]] = await Promise.all([
    database.runCalmly(backlog, [now, JSON.stringify(agents), JSON.stringify(counted)]),
    database.runCalmly(deadLetters, []),
    database.runCalmly(endpoints, []),
  ])
  return toSurvey(queues!, dead, total!)
}
