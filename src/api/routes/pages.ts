/** The dashboard and the portal: files that Vite built into dist/dashboard. They get all data from the API. */
import { readdirSync, readFileSync } from "node:fs"
import { extname } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import type { FastifyReply, FastifyRequest } from "fastify"
import type { Api } from "../context.ts"
import { ApiError } from "../errors.ts"
import { DASHBOARD_PATHS, PORTAL_PATH } from "../page-paths.ts"

/** From src/api/routes and from dist/api/routes alike. */
const FOLDER = new URL("../../../dist/dashboard/", import.meta.url)

const TYPES: { readonly [extension: string]: string } = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
}

interface BuiltFile {
  readonly type: string
  readonly plain: Buffer
  readonly gzipped: Buffer
}

export interface PageSettings {
  /** Origins whose pages may show the portal in a frame. */
  readonly frameAncestors: readonly string[]
}

/** An operator opens them when the server is overloaded. All responses share the bytes of the files. */
const HIDDEN = { config: { auth: "none", always: true }, schema: { hide: true } } as const
/** The names of assets contain a digest of their contents. */
const FOR_EVER = "public, max-age=31536000, immutable"

/** Returns a handler that sends the dashboard for an address that is none of its pages. */
export function pageRoutes(app: Api, { frameAncestors }: PageSettings) {
  const files = readFiles()
  const page = (name: string, ancestors: readonly string[]) => {
    const policy = policyFor(ancestors)
    return async (request: FastifyRequest, reply: FastifyReply) => {
      const file = files.get(name)
      if (file === undefined) throw notBuilt()
      void reply
        .header("content-security-policy", policy)
        .header("cache-control", "no-cache")
        .header("referrer-policy", "no-referrer")
        .header("cross-origin-opener-policy", "same-origin")
      return sendFile(file, request, reply)
    }
  }
  const dashboard = page("index.html", [])
  const portal = page("portal.html", frameAncestors)
  for (const path of ["", ...DASHBOARD_PATHS]) app.get(`/${path}`, HIDDEN, dashboard)
  for (const path of DASHBOARD_PATHS) app.get(`/${path}/*`, HIDDEN, dashboard)
  app.get(PORTAL_PATH, HIDDEN, portal)
  app.get(`${PORTAL_PATH}/*`, HIDDEN, portal)
  for (const [name, file] of files)
    if (!name.endsWith(".html"))
      app.get(`/${name}`, HIDDEN, async (request, reply) => {
        void reply.header("cache-control", name.startsWith("assets/") ? FOR_EVER : "no-cache")
        return sendFile(file, request, reply)
      })
  return dashboard
}

function sendFile(file: BuiltFile, request: FastifyRequest, reply: FastifyReply) {
  const gzips = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "")
  if (gzips) void reply.header("content-encoding", "gzip")
  return reply
    .header("vary", "accept-encoding")
    .header("x-content-type-options", "nosniff")
    .type(file.type)
    .send(gzips ? file.gzipped : file.plain)
}

/** Scripts and styles come from files of this server alone, and texts of strangers cannot become markup. */
function policyFor(frameAncestors: readonly string[]): string {
  const ancestors = frameAncestors.length === 0 ? "'none'" : frameAncestors.join(" ")
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${ancestors}`,
    "require-trusted-types-for 'script'",
    "trusted-types posthorn",
  ].join("; ")
}

/** By their path below the server's root. Empty in a clone where nothing was built. */
function readFiles(): Map<string, BuiltFile> {
  const folder = fileURLToPath(FOLDER)
  const files = new Map<string, BuiltFile>()
  let names: string[]
  try {
    names = readdirSync(folder, { recursive: true, encoding: "utf8" })
  } catch {
    return files
  }
  for (const name of names) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    const plain = readFileSync(new URL(name, FOLDER))
    files.set(name.replaceAll("\\", "/"), { type, plain, gzipped: gzipSync(plain) })
  }
  return files
}

function notBuilt(): ApiError {
  return ApiError.of(
    503,
    "not_built",
    "the dashboard was not built: run npm start, or node scripts/build-dashboard.mjs. The API's reference is at /docs",
  )
}
