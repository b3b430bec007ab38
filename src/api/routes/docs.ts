/** The API described by itself: for programs and for people. */
import { type Api, PREFIX } from "../context.ts"
import type { OpenApi } from "../docs/document.ts"

const PAGE_TYPE = "text/html; charset=utf-8"
/** The page runs nothing and loads nothing. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

/** Made when it is first asked for, and kept. */
export function docsRoutes(app: Api, describe: () => Promise<OpenApi>): void {
  const hidden = { config: { auth: "none" }, schema: { hide: true } } as const
  const document = once(async () => JSON.stringify(await describe()))
  const page = once(async () => (await import("../docs/page.ts")).docsPage(JSON.parse(await document())))
  // As bytes: the framework would add a charset, which JSON does not have and clients that compare the type do not expect.
  for (const path of [`${PREFIX}/openapi.json`, "/openapi.json"])
    app.get(path, hidden, async (_request, reply) =>
      reply.header("content-type", "application/json").send(Buffer.from(await document())),
    )
  app.get("/docs", hidden, async (_request, reply) =>
    reply
      .type(PAGE_TYPE)
      .header("content-security-policy", POLICY)
      .send(await page()),
  )
  app.get("/", hidden, async (_request, reply) => reply.redirect("/docs", 307))
}

function once(make: () => Promise<string>): () => Promise<string> {
  let made: Promise<string> | null = null
  return () => {
    made ??= make()
    return made
  }
}
