/** The first request of a server is held to its schema as every other: the compiler is loaded by then. */
import { expect, onTestFinished, test } from "vitest"
import { DEFAULT_ORG } from "../core/org.ts"
import { createLogger } from "../observe/log.ts"
import { openPosthorn } from "../posthorn.ts"
import { callerFromClaims } from "./caller.ts"
import { createServer } from "./server.ts"

test("the first request is refused when its body does not fit, and the next has a query that is coerced", async () => {
  const posthorn = await openPosthorn({ store: "sqlite::memory:", deliver: false, logger: "silent" })
  const app = createServer(posthorn, {
    logger: createLogger("silent"),
    maxPayloadBytes: 1_048_576,
    maxRequests: 10,
    closeTimeoutMs: 0,
    readToken: async () => callerFromClaims({ sub: DEFAULT_ORG }),
  })
  onTestFinished(() => app.close())
  const headers = { authorization: "Bearer a.b.c" }
  const refused = await app.inject({ method: "POST", url: "/api/v1/app", headers, payload: { nmae: "Acme" } })
  expect(refused.statusCode).toBe(422)
  expect((await app.inject({ url: "/api/v1/app?limit=2", headers })).statusCode).toBe(200)
})
