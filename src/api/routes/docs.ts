/** The OpenAPI document and the reference page. */
import { type Api, PREFIX } from "../context.ts"
import { LONGEST_SEARCH, type OpenApi } from "../docs/document.ts"
import { Type } from "../schema.ts"

const PAGE_TYPE = "text/html; charset=utf-8"
/** The page needs no scripts and no other files. */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Generated at the first request. */
export function docsRoutes(app: Api, describe: () => Promise<OpenApi>): void {
  const hidden = { config: { auth: "none", isForStrangers: true }, schema: { hide: true } } as const
  const document = once(async () => JSON.stringify(await describe()))
  const page = once(async () => (await import("../docs/page.ts")).docsPage(JSON.parse(await document())))
  const query = Type.Object({ q: Type.Optional(Type.String({ maxLength: LONGEST_SEARCH })) })
  // As bytes: Fastify would add a charset, which clients that compare the type do not expect.
  for (const path of [`${PREFIX}/openapi.json`, "/openapi.json"])
    app.get(path, hidden, async (_request, reply) =>
      reply.header("content-type", "application/json").send(Buffer.from(await document())),
    )
  app.get(
    "/docs",
    { ...hidden, schema: { ...hidden.schema, querystring: query } },
    async ({ query: { q = "" } }, reply) =>
      reply
        .type(PAGE_TYPE)
        .header("content-security-policy", POLICY)
        .send((await page())(q.trim())),
  )
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => {
    made ??= make()
    return made
  }
}
