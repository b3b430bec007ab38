/** Background tasks: `/task` has all, `/background-task` those of Svix's kinds. */
import { notFound } from "../../core/errors.ts"
import { isSvixTask, SVIX_TASK_TYPES } from "../../core/task-types.ts"
import type { Task, TaskQuery } from "../../resources/tasks.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { omitNullish, pageQuery } from "../query-params.ts"
import { Type } from "../schema.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import {
  type BackgroundTaskOut as BackgroundOut,
  BackgroundTaskOut,
  SvixTaskType,
  TaskOut,
  TaskStatus,
  TaskType,
} from "../schemas/delivery.ts"
import { listOut, taskOut } from "../views/views.ts"

const params = Type.Object({ task_id: Type.String({ minLength: 1, maxLength: 256 }) })
const query = { ...PageQuery, order: Type.Optional(Order), status: Type.Optional(TaskStatus) }

const taskStatus = (status: "running" | "finished" | "failed" | undefined) =>
  status === "failed" ? "cancelled" : status

export const taskRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/task",
    operation("v1.task.list", "List tasks of every kind, the newest first", {
      auth: "org",
      tags: ["Task"],
      querystring: Type.Object({ ...query, task: Type.Optional(TaskType) }),
      response: { 200: ListResponse("ListResponseTaskOut", TaskOut) },
    }),
    async (request) => {
      const { status, task } = request.query
      const filter = omitNullish<TaskQuery>({ status: taskStatus(status), type: task })
      return listOut(await tenant(request).tasks.list({ ...pageQuery(request.query), ...filter }), taskOut)
    },
  )

  app.get(
    "/task/:task_id",
    operation("v1.task.get", "Get a task, with its progress and what it found", {
      auth: "org",
      tags: ["Task"],
      params,
      response: { 200: TaskOut },
    }),
    async (request) => taskOut(await tenant(request).tasks.get(request.params.task_id)),
  )

  app.post(
    "/task/:task_id/cancel",
    operation(
      "v1.task.cancel",
      "Stop a task; what it has done stays done, and a finished one stays as it is",
      { auth: "org", tags: ["Task"], params, response: { 200: TaskOut } },
    ),
    async (request) => taskOut(await tenant(request).tasks.cancel(request.params.task_id)),
  )

  app.get(
    "/background-task",
    operation(
      "v1.background-task.list",
      "List tasks of the kinds that Svix has, the newest first; `/task` lists all",
      {
        auth: "org",
        tags: ["Background Task"],
        querystring: Type.Object({ ...query, task: Type.Optional(SvixTaskType) }),
        response: { 200: ListResponse("ListResponseBackgroundTaskOut", BackgroundTaskOut) },
      },
    ),
    async (request) => {
      const { status, task = SVIX_TASK_TYPES } = request.query
      const filter = omitNullish<TaskQuery>({ status: taskStatus(status), type: task })
      const list = await tenant(request).tasks.list({ ...pageQuery(request.query), ...filter })
      return listOut(list, backgroundTaskOut)
    },
  )

  app.get(
    "/background-task/:task_id",
    operation("v1.background-task.get", "Get a task of a kind that Svix has", {
      auth: "org",
      tags: ["Background Task"],
      params,
      response: { 200: BackgroundTaskOut },
    }),
    async (request) => backgroundTaskOut(await tenant(request).tasks.get(request.params.task_id)),
  )
}

function backgroundTaskOut(task: Task): BackgroundOut {
  const { type } = task
  if (!isSvixTask(type)) throw notFound("task", task.id)
  return { ...taskOut(task), task: type }
}
