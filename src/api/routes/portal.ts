/** Portal access for an application's owner, and the caller's identity: `/auth`. */
import type { Capability, KeyInput } from "../../resources/keys.ts"
import { grantOf } from "../../resources/sessions.ts"
import { requireCaller } from "../auth.ts"
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { operation } from "../operation.ts"
import { originOf } from "../origin.ts"
import { omitNullish } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import { AppId } from "../schemas/fields.ts"
import {
  ApplicationTokenExpireIn,
  AppPortalAccessIn,
  AppPortalAccessOut,
  WEEK_SECONDS,
  WhoamiOut,
} from "../schemas/key.ts"
import { ensureApplication } from "./applications.ts"
import { pageOf } from "./sessions.ts"

const tags = ["Authentication"]
const params = Type.Object(AppId)

export const portalRoutes: Routes = (app, { tenant, posthorn, publicUrl, cookies }) => {
  for (const path of ["app-portal-access", "dashboard-access"] as const) {
    app.post(
      `/auth/${path}/:app_id`,
      operation(`v1.authentication.${path}`, "A token that opens one application, for its owner", {
        auth: "org",
        isRecorded: false,
        description:
          "The token may do what its capabilities say, for a week unless told. The url opens the portal, for one visitor: it contains a code, not the token, " +
          "and the portal exchanges it for a session with the token's rights. The session ends with the token.",
        tags,
        params,
        // Older clients send no body.
        ...(path === "dashboard-access"
          ? { deprecated: true, body: Type.Nullable(AppPortalAccessIn) }
          : { body: AppPortalAccessIn }),
        response: { 200: AppPortalAccessOut },
      }),
      async (request) => {
        const { applications, keys, sessions } = tenant(request)
        const { app_id: appId } = request.params
        const asked: AppPortalAccessIn = request.body ?? {}
        const { application, expiry, featureFlags, sessionId } = asked
        await ensureApplication(applications, appId, application)
        const key = await keys.create({
          name: "portal",
          scope: "application",
          appId,
          capabilities: capabilitiesOf(asked),
          ...omitNullish<KeyInput>({ featureFlags, sessionId }),
          expiresAt: posthorn.context.clock.now() + (expiry ?? WEEK_SECONDS) * 1000,
        })
        const code = await sessions.createCode(grantOf(key))
        return { url: `${publicUrl ?? originOf(request)}/portal#code=${code}`, token: key.token }
      },
    )
  }

  app.post(
    "/auth/app/:app_id/expire-all",
    operation(
      "v1.authentication.expire-all",
      "Revoke every key of an application, or those of some sessions",
      { auth: "org", tags, params, body: ApplicationTokenExpireIn, response: { 204: NoContent } },
    ),
    async (request, reply) => {
      const { expiry, sessionIds = [] } = request.body
      await tenant(request).keys.revokeAll(request.params.app_id, {
        inSeconds: expiry ?? 0,
        ...(sessionIds.length === 0 ? {} : { sessionIds }),
      })
      return reply.code(204).send()
    },
  )

  app.post(
    "/auth/logout",
    operation(
      "v1.authentication.logout",
      "End the session, or revoke the key, that the request was made with; a key only if it is an application's",
      { auth: "read", isRecorded: false, capability: "ViewBase", tags, response: { 204: NoContent } },
    ),
    async (request, reply) => {
      const caller = requireCaller(request)
      const { access, keyId, appId, browserSession } = caller
      if (browserSession !== null) {
        await tenant(request).sessions.revoke(browserSession)
        const isByCookie = request.headers.authorization === undefined
        if (isByCookie) void reply.header("set-cookie", cookies.write(pageOf(caller), null, 0))
        return reply.code(204).send()
      }
      if (access === "read") throw ApiError.of(403, "insufficient access", "this key can only read")
      if (keyId === null)
        throw ApiError.of(400, "generic_error", "a JWT cannot be revoked: it is good until it expires")
      if (appId === null)
        throw ApiError.of(
          400,
          "generic_error",
          "only an application's key can be logged out; use DELETE /key",
        )
      await tenant(request).keys.revoke(keyId)
      return reply.code(204).send()
    },
  )

  app.get(
    "/auth/whoami",
    operation(
      "v1.authentication.whoami",
      "Whose the key is that the request is made with, and what it may do",
      { auth: "read", tags, response: { 200: WhoamiOut } },
    ),
    async (request) => {
      const { orgId, appId, access, capabilities, featureFlags, keyId, browserSession, name } =
        requireCaller(request)
      const key = keyId === null ? null : await tenant(request).keys.get(keyId)
      return {
        envId: orgId,
        appId,
        permissionSource:
          key === null && browserSession === null ? ("SvixJwt" as const) : ("RegionalAuthToken" as const),
        sessionId: key?.sessionId ?? null,
        keyId,
        name,
        browserSession,
        scope: access,
        capabilities: capabilities === null ? null : [...capabilities],
        featureFlags: featureFlags === null ? null : [...featureFlags],
      }
    },
  )
}

/** Every capability implies ViewBase; a read-only portal keeps the viewing capabilities. */
function capabilitiesOf({ readOnly, capabilities }: AppPortalAccessIn): readonly Capability[] | null {
  if (capabilities == null) return readOnly ? ["ViewBase"] : null
  const allowed = capabilities.filter((one) => !readOnly || one.startsWith("View"))
  return [...new Set(["ViewBase" as const, ...allowed])]
}
