/** A survey of the whole file. */
import { surveyStatements, toSurvey } from "../survey.ts"
import type { Operation } from "./context.ts"
import { LIVE } from "./schema.ts"

/** In the order of the index, whose first column is `handed`: a lane with handed deliveries has two groups. */
const { backlog, deadLetters, endpoints } = surveyStatements({
  table: "webhook_deliveries",
  live: `webhook_deliveries d INDEXED BY deliveries_live WHERE d.${LIVE}`,
  queue: "d.handed, d.webhook_id, d.rank",
  head: `SELECT seq FROM webhook_deliveries INDEXED BY deliveries_line WHERE ${LIVE} AND rank < 1 AND webhook_id = q.webhook_id ORDER BY seq LIMIT 1`,
  least: "min",
  greatest: "max",
  retriesAt: "CASE WHEN json_valid(e.protection) THEN json_extract(e.protection, '$.retriesAt') END",
  agents: "json_each($2) a",
  counted: "SELECT value FROM json_each($3)",
  toObject: (name, value) => `json_group_object(${name}, ${value})`,
  digits: (number) => `printf('%016d', ${number})`,
})

export const survey: Operation<"survey"> = ({ connection }, now, agents = {}, counted = []) =>
  toSurvey(
    connection.sql(backlog.text).get(now, JSON.stringify(agents), JSON.stringify(counted))!,
    connection.sql(deadLetters.text).all(),
    connection.sql(endpoints.text).get()!,
  )
