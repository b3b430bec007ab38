/** Sessions of browsers: `/auth/session` opens one, `/session` lists and ends them. */
import type { FastifyReply, FastifyRequest } from "fastify"
import { hasCode } from "../../core/errors.ts"
import { redeemCode } from "../../resources/login-code.ts"
import { IDLE_MS } from "../../resources/session-record.ts"
import { type Grant, grantOf, type NewSession, OPERATOR, type Session } from "../../resources/sessions.ts"
import { requireCaller } from "../auth.ts"
import { type Caller, unauthenticated } from "../caller.ts"
import type { Context, Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { operation } from "../operation.ts"
import { originOf } from "../origin.ts"
import { ownerQuery, pageQuery } from "../query-params.ts"
import { NoContent, Type } from "../schema.ts"
import { HttpErrorOut, ListResponse, Order, OwnerQuery, PageQuery } from "../schemas/common.ts"
import {
  DashboardLinkIn,
  DashboardLinkOut,
  NewSessionOut,
  SessionIn,
  SessionOut,
} from "../schemas/session.ts"
import { isLoopback, type SessionPage } from "../session-cookies.ts"
import { SessionLimit } from "../session-limit.ts"
import { listOut } from "../views/views.ts"

const tags = ["Session"]
/** A key or a code. Strangers may send it: their bodies must leave room for each other. */
const MOST_SIGN_IN_BYTES = 4096
const params = Type.Object({ session_id: Type.String({ minLength: 1, maxLength: 64 }) })

export const sessionRoutes: Routes = (app, context) => {
  const { tenant, cookies, publicUrl } = context
  const limit = new SessionLimit()
  app.post(
    "/auth/session",
    {
      bodyLimit: MOST_SIGN_IN_BYTES,
      ...operation("v1.session.open", "Exchange a key or a login link for a session", {
        auth: "none",
        description:
          "For browsers. The session is a cookie that scripts cannot read; requests use it by the header `posthorn-session: dashboard` or `portal`, from pages of this server only. " +
          "It ends after 12 hours without a request, after 7 days, and with its key.",
        tags,
        body: SessionIn,
        response: { 201: NewSessionOut, 401: HttpErrorOut, 403: HttpErrorOut, 429: HttpErrorOut },
      }),
    },
    async (request, reply) => {
      void reply.header("cache-control", "no-store")
      const { cookie = true } = request.body
      if (cookie) cookies.requireSameOrigin(request.headers)
      const { orgId, grant } = await grantFor(context, limit, request.body)
      const session = await context.posthorn.tenant(orgId).sessions.open(grant)
      if (cookie) {
        setCookie(context, reply, session)
        warnOfPlainCookies(context, request)
      }
      return reply.code(201).send({ ...sessionOut(session), token: cookie ? null : session.token })
    },
  )

  app.post(
    "/auth/dashboard-link",
    operation("v1.session.link", "A link that signs one browser in to the dashboard", {
      auth: "org",
      description:
        "The session gets the rights of the key, or only reads, and ends with the key. The link works once, within an hour.",
      tags,
      body: DashboardLinkIn,
      response: { 200: DashboardLinkOut, 403: HttpErrorOut },
    }),
    async (request) => {
      const { readOnly = false } = request.body
      const { sessions, keys } = tenant(request)
      const { keyId, via } = requireCaller(request)
      // The session would outlive the token, and a new secret would not end it.
      if (via === "jwt")
        throw ApiError.of(403, "insufficient access", "only a key or a session makes a link: not a JWT")
      const grant = keyId === null ? OPERATOR : grantOf(await keys.get(keyId))
      const code = await sessions.createCode(readOnly ? { ...grant, ...READ_ONLY } : grant)
      return { url: `${publicUrl ?? originOf(request)}/#code=${code}` }
    },
  )

  app.get(
    "/session",
    operation("v1.session.list", "List sessions, also those that ended in the last 30 days", {
      auth: "org",
      tags,
      querystring: Type.Object({ ...PageQuery, order: Type.Optional(Order), ...OwnerQuery }),
      response: { 200: ListResponse("ListResponseSessionOut", SessionOut), 404: HttpErrorOut },
    }),
    async (request) => {
      const query = { ...pageQuery(request.query), ...ownerQuery(request.query) }
      return listOut(await tenant(request).sessions.list(query), sessionOut)
    },
  )

  app.delete(
    "/session/:session_id",
    operation("v1.session.revoke", "End a session", {
      auth: "org",
      tags,
      params,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      await tenant(request).sessions.revoke(request.params.session_id)
      return reply.code(204).send()
    },
  )
}

const READ_ONLY = { scope: "read", capabilities: ["ViewBase"] } as const

/** Throws a 401 for a key or a code that opens nothing, and a 429 for a key that has opened too many sessions. */
async function grantFor(
  { posthorn, identify }: Context,
  limit: SessionLimit,
  { key, code }: SessionIn,
): Promise<{ readonly orgId: string; readonly grant: Grant }> {
  const { store, clock } = posthorn.context
  if ((key === undefined) === (code === undefined))
    throw ApiError.invalidAt(["body"], "give either key or code")
  if (key !== undefined) {
    const caller = await identify({ authorization: `Bearer ${key}` })
    const { orgId } = caller
    const keyId = requireKey(caller)
    limit.take(keyId, clock.now())
    return { orgId, grant: grantOf(await posthorn.tenant(orgId).keys.get(keyId)) }
  }
  try {
    return await redeemCode(store, code!, clock.now())
  } catch (error) {
    if (hasCode(error, "not_found")) throw unauthenticated((error as Error).message)
    throw error
  }
}

function requireKey({ access, keyId, browserSession }: Caller): string {
  if (keyId === null || browserSession !== null)
    throw ApiError.of(
      403,
      "insufficient access",
      "only a key opens a session: not a JWT, and not another session",
    )
  if (access === "agent")
    throw ApiError.of(
      403,
      "insufficient access",
      "an agent's key can only connect an agent, to /api/v1/relay",
    )
  return keyId
}

function setCookie({ cookies, posthorn }: Context, reply: FastifyReply, session: NewSession): void {
  const seconds = Math.round((session.expiresAt.getTime() - posthorn.context.clock.now()) / 1000)
  void reply.header("set-cookie", cookies.write(pageOf(session), session.token, seconds))
}

/** The browser's address has the proxy before this server; the connection may come from a proxy on this machine. */
function warnOfPlainCookies({ cookies }: Context, { headers: { origin }, ip, log }: FastifyRequest): void {
  if (cookies.isSecure) return
  if (origin?.startsWith("https:"))
    log.warn(
      "a browser signed in over https, and its cookie is not marked Secure: set publicUrl to the https address",
    )
  else if (!isLoopback(ip) || (origin !== undefined && !isLoopback(new URL(origin).hostname)))
    log.warn(
      "a browser signed in over plain HTTP, where its cookie can be read on the way: put a proxy with TLS before this server, and set publicUrl to its https address",
    )
}

export function pageOf({ appId }: Pick<Session, "appId">): SessionPage {
  return appId === null ? "dashboard" : "portal"
}

function sessionOut(session: Session) {
  const { id, name, keyId, scope, appId, sessionId, createdAt, lastUsedAt, revokedAt } = session
  const capabilities = session.capabilities === null ? null : [...session.capabilities]
  const expiresAt = new Date(Math.min(session.expiresAt.getTime(), lastUsedAt.getTime() + IDLE_MS))
  return {
    ...{ id, name, page: pageOf(session), keyId, scope, appId, capabilities, sessionId },
    ...{ createdAt, lastUsedAt, expiresAt, revokedAt },
  }
}
