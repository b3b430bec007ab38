/** Who is told of what happens to a tenant's webhooks. */
import { expect, test } from "vitest"
import { PosthornError } from "../core/errors.ts"
import { createLogger } from "../observe/log.ts"
import { MANAGEMENT_ORG, TenantWebhooks, type TenantWebhooksParts } from "./tenant-webhooks.ts"

test("a destination that fails does not keep the other from its notice", async () => {
  for (const error of [new Error("the store broke"), new PosthornError("conflict", "the key was used")]) {
    const told: string[] = []
    const tenant = (orgId: string) => ({
      send: async (app: string) => {
        if (orgId !== MANAGEMENT_ORG) throw error
        told.push(app)
      },
    })
    const store = { getApplication: async () => ({}) }
    const parts = { store, tenant, logger: createLogger("silent") } as unknown as TenantWebhooksParts
    await new TenantWebhooks(parts).announce("org_acme", "endpoint.created", () => ({}))
    expect(told).toEqual(["org_acme"])
  }
})
