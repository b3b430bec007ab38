import { getRandomValues } from "node:crypto"
import { expect, onTestFinished, test } from "vitest"
import { createIds } from "../../core/ids.ts"
import { sample } from "../conformance/samples.ts"
import { Recipients } from "../recipients.ts"
import { accept } from "./accept.ts"
import { createApplication } from "./applications.ts"
import { Connection } from "./connection.ts"
import { Context, MOST_RECIPIENTS } from "./context.ts"
import { createEndpoint } from "./endpoints.ts"
import { migrate } from "./migrate.ts"

test("the cache of recipients is bounded; an evicted application is read again", () => {
  const connection = new Connection(":memory:")
  onTestFinished(() => connection.close())
  migrate(connection)
  const context = new Context(
    connection,
    createIds((into) => getRandomValues(into)),
  )
  const application = sample.application()
  createApplication(context, application)
  createEndpoint(context, sample.endpoint(application.id))
  const key = `${application.orgId} ${application.id}`
  const send = () => accept(context, [sample.message(application.id)])[0]!.matched
  expect([send(), context.recipients.get(key)?.subscribers.length]).toEqual([1, 1])
  const other = new Recipients("app_other", [])
  for (let i = 0; i < MOST_RECIPIENTS; i++) context.recipients.set(`org other-${i}`, other)
  expect(context.recipients.get(key)).toBeUndefined()
  expect([send(), context.recipients.get(key)?.subscribers.length]).toEqual([1, 1])
})
