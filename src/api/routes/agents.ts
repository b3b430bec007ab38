/** Agents: `/app/{app_id}/agent`, and `/agent` of the whole organization. */
import type { Agent } from "../../resources/agents.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { pageQuery } from "../query-params.ts"
import { Type } from "../schema.ts"
import { AgentOut } from "../schemas/agent.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import { AppId } from "../schemas/fields.ts"
import { listOut } from "../views/views.ts"

const tags = ["Agent"]
const querystring = Type.Object({ ...PageQuery, order: Type.Optional(Order) })
const response = { 200: ListResponse("ListResponseAgentOut", AgentOut) }

export const agentRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/app/:app_id/agent",
    operation(
      "v1.agent.list",
      "List an application's agents: who is connected, since when, what is in flight",
      {
        auth: "app",
        tags,
        params: Type.Object(AppId),
        querystring,
        response,
      },
    ),
    async (request) => {
      const query = { app: request.params.app_id, ...pageQuery(request.query) }
      return listOut(await tenant(request).agents.list(query), agentOut)
    },
  )

  app.get(
    "/app/:app_id/agent/:agent_name",
    operation("v1.agent.get", "Get an agent", {
      auth: "app",
      tags,
      params: Type.Object({
        ...AppId,
        agent_name: Type.String({ minLength: 1, maxLength: 63, description: "The NAME of relay://NAME." }),
      }),
      response: { 200: AgentOut },
    }),
    async (request) => {
      const { app_id, agent_name } = request.params
      return agentOut(await tenant(request).agents.get(app_id, agent_name))
    },
  )

  app.get(
    "/agent",
    operation("v1.agent.list-all", "List the agents of all applications", {
      auth: "org",
      tags,
      querystring,
      response,
    }),
    async (request) => listOut(await tenant(request).agents.list(pageQuery(request.query)), agentOut),
  )
}

function agentOut({ endpoints, ...agent }: Agent): AgentOut {
  return { ...agent, endpoints: [...endpoints] }
}
