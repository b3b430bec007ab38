/** CORS for every origin: keys are sent in a header that browsers do not add by themselves. */
import type { Api } from "./context.ts"

export function allowBrowsers(app: Api): void {
  app.addHook("onRequest", (request, reply, done) => {
    void reply.header("access-control-allow-origin", "*")
    const method = request.headers["access-control-request-method"]
    if (request.method !== "OPTIONS" || method === undefined) return done()
    const headers = request.headers["access-control-request-headers"]
    if (headers !== undefined) void reply.header("access-control-allow-headers", headers)
    void reply
      .header("access-control-allow-methods", method)
      .header("access-control-max-age", "600")
      .header("vary", "access-control-request-headers, access-control-request-method")
      .code(204)
      .send()
  })
}
