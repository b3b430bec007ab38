/** Durable work on many deliveries or messages, and what it found: `/background-task`. */
import type { TaskQuery } from "../../resources/tasks.ts"
import { given, pageAsked } from "../asked.ts"
import type { Routes } from "../context.ts"
import { Type } from "../schema.ts"
import { TaskOut, TaskStatus } from "../schemas/delivery.ts"
import { ListResponse, Order, PageQuery } from "../shapes.ts"
import { listOut, taskOut } from "../views/views.ts"

const tags = ["Background Task"]
const params = Type.Object({ task_id: Type.String({ minLength: 1, maxLength: 256 }) })

export const taskRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/background-task",
    {
      config: { auth: "org" },
      schema: {
        operationId: "v1.background-task.list",
        summary: "List tasks, the newest first",
        tags,
        querystring: Type.Object({
          ...PageQuery,
          order: Type.Optional(Order),
          status: Type.Optional(TaskStatus),
          task: Type.Optional(
            Type.String({ maxLength: 256, description: "What it does, such as endpoint.recover." }),
          ),
        }),
        response: { 200: ListResponse("ListResponseBackgroundTaskOut", TaskOut) },
      },
    },
    async (request) => {
      const { status, task } = request.query
      const filter = given<TaskQuery>({ status: status === "failed" ? "cancelled" : status, type: task })
      return listOut(await tenant(request).tasks.list({ ...pageAsked(request.query), ...filter }), taskOut)
    },
  )

  app.get(
    "/background-task/:task_id",
    {
      config: { auth: "org" },
      schema: {
        operationId: "v1.background-task.get",
        summary: "Get a task, with its progress and what it found",
        tags,
        params,
        response: { 200: TaskOut },
      },
    },
    async (request) => taskOut(await tenant(request).tasks.get(request.params.task_id)),
  )

  app.post(
    "/background-task/:task_id/cancel",
    {
      config: { auth: "org" },
      schema: {
        operationId: "v1.background-task.cancel",
        summary: "Stop a task; what it has done stays done, and a finished one stays as it is",
        tags,
        params,
        response: { 200: TaskOut },
      },
    },
    async (request) => taskOut(await tenant(request).tasks.cancel(request.params.task_id)),
  )
}
