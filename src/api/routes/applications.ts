/** Applications: `/app`. */
import { hasCode } from "../../core/errors.ts"
import type { ApplicationInput, ApplicationQuery } from "../../resources/applications.ts"
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { operation } from "../operation.ts"
import { eitherName, omitNullish, pageQuery } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import {
  type ApplicationIn,
  ApplicationOut,
  ApplicationPatch,
  ApplicationIn as In,
} from "../schemas/application.ts"
import { ListResponse, Order, PageQuery } from "../schemas/common.ts"
import { AppId } from "../schemas/fields.ts"
import { updateOrCreate } from "../upsert.ts"
import { applicationOut, listOut } from "../views/views.ts"

const tags = ["Application"]
const params = Type.Object(AppId)
const SVIX_PLAY = "https://play.svix.com/"
const exclusions = {
  exclude_apps_with_no_endpoints: Type.Optional(Type.Boolean()),
  exclude_apps_with_disabled_endpoints: Type.Optional(
    Type.Boolean({ description: "Those that have endpoints, all of them disabled." }),
  ),
  exclude_apps_with_svix_play_endpoints: Type.Optional(
    Type.Boolean({ description: "Those that have endpoints, all of them at play.svix.com." }),
  ),
}

/** `rateLimit` is the older name of `throttleRate`. */
export function applicationInput(body: Partial<ApplicationIn>): Partial<ApplicationInput> {
  const { throttleRate, rateLimit, ...rest } = body
  const rate = eitherName(throttleRate, rateLimit)
  return { ...rest, ...(rate === undefined ? {} : { rateLimit: rate }) }
}

export const applicationRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/app",
    operation("v1.application.list", "List applications", {
      auth: "org",
      tags,
      querystring: Type.Object({ ...PageQuery, order: Type.Optional(Order), ...exclusions }),
      response: { 200: ListResponse("ListResponseApplicationOut", ApplicationOut) },
    }),
    async (request) => {
      const { query } = request
      const list = await tenant(request).applications.list({
        ...pageQuery(query),
        ...omitNullish<ApplicationQuery>({
          excludeWithoutEndpoints: query.exclude_apps_with_no_endpoints,
          excludeAllDisabled: query.exclude_apps_with_disabled_endpoints,
          excludeAllTo: query.exclude_apps_with_svix_play_endpoints ? SVIX_PLAY : null,
        }),
      })
      return listOut(list, applicationOut)
    },
  )

  app.post(
    "/app",
    operation("v1.application.create", "Create an application", {
      auth: "org",
      tags,
      querystring: Type.Object({
        get_if_exists: Type.Optional(
          Type.Boolean({ description: "One with the same uid is returned instead of a conflict." }),
        ),
      }),
      body: In,
      response: { 200: ApplicationOut, 201: ApplicationOut },
    }),
    async (request, reply) => {
      const { applications } = tenant(request)
      const { uid } = request.body
      try {
        const made = await applications.create(applicationInput(request.body) as ApplicationInput)
        return reply.code(201).send(applicationOut(made))
      } catch (error) {
        if (!hasCode(error, "conflict") || !request.query.get_if_exists || !uid) throw error
        return reply.code(200).send(applicationOut(await applications.get(uid)))
      }
    },
  )

  app.get(
    "/app/:app_id",
    operation("v1.application.get", "Get an application", {
      auth: "app",
      tags,
      params,
      response: { 200: ApplicationOut },
    }),
    async (request) => applicationOut(await tenant(request).applications.get(request.params.app_id)),
  )

  app.put(
    "/app/:app_id",
    operation("v1.application.update", "Replace an application, or create it", {
      auth: "org",
      tags,
      params,
      body: In,
      response: { 200: ApplicationOut, 201: ApplicationOut },
    }),
    async (request, reply) => {
      const { applications } = tenant(request)
      const { app_id: key } = request.params
      const input = { uid: null, metadata: {}, rateLimit: null, ...applicationInput(request.body) }
      const { value, status } = await updateOrCreate(
        () => applications.update(key, input),
        () => applications.create(omitNullish<ApplicationInput>(input) as ApplicationInput),
      )
      return reply.code(status).send(applicationOut(value))
    },
  )

  app.patch(
    "/app/:app_id",
    operation("v1.application.patch", "Change what is given", {
      auth: "org",
      tags,
      params,
      body: ApplicationPatch,
      response: { 200: ApplicationOut },
    }),
    async (request) =>
      applicationOut(
        await tenant(request).applications.update(request.params.app_id, applicationInput(request.body)),
      ),
  )

  app.delete(
    "/app/:app_id",
    operation(
      "v1.application.delete",
      "Delete an application with its endpoints; their waiting deliveries are cancelled",
      { auth: "org", tags, params, response: { 204: NoContent } },
    ),
    async (request, reply) => {
      await tenant(request).applications.delete(request.params.app_id)
      return reply.code(204).send()
    },
  )
}

interface Applications {
  get(app: string): Promise<unknown>
  create(input: ApplicationInput): Promise<unknown>
}

/** Creates the application of the path if it does not exist and the body describes it. */
export async function ensureApplication(
  applications: Applications,
  key: string,
  body: ApplicationIn | null | undefined,
): Promise<void> {
  if (!body) return
  await updateOrCreate(
    () => applications.get(key),
    async () => {
      if (body.uid === key) return applications.create(applicationInput(body) as ApplicationInput)
      const type = body.uid == null ? "application_uid_missing" : "application_uid_mismatch"
      throw ApiError.invalidAt(["body", "application", "uid"], "must be the uid in the path", type)
    },
  )
}
