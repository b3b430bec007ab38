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
    const webhooks = new TenantWebhooks(parts)
    const endpoint = { id: "ep_1", uid: null, appId: "app_1", orgId: "org_acme" }
    webhooks.handle({ type: "endpoint.created", endpoint, at: 0 })
    await webhooks.settled()
    expect(told).toEqual(["org_acme"])
  }
})
