/** A SQLite store of its own with an application and an endpoint, gone after the test. */
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { sample } from "../../src/store/conformance/samples.ts"
import { openSqliteStore } from "../../src/store/sqlite/store.ts"
import type { Endpoint } from "../../src/store/store.ts"
import { temporaryFolder } from "./harness.ts"

export async function sqliteStage(more: Partial<Endpoint> = {}) {
  const path = join(temporaryFolder(), "posthorn.db")
  const store = await openSqliteStore({ path, own: true, onLost() {} })
  onTestFinished(() => store.close())
  const application = sample.application()
  const endpoint = sample.endpoint(application.id, more)
  await store.createApplication(application)
  await store.createEndpoint(endpoint)
  return { path, store, application, endpoint }
}
