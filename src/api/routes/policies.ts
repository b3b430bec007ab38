/** Retry policies by name: `/retry-policy`. */
import type { PolicyInput } from "../../core/policy.ts"
import { writePolicy } from "../../core/write-policy.ts"
import type { NamedPolicy } from "../../resources/policies.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { NoContent, Type } from "../schema.ts"
import { HttpErrorOut } from "../schemas/common.ts"
import { NamedPolicyOut, PolicyIn, PreviewIn, PreviewOut } from "../schemas/policy.ts"

const tags = ["Retry Policy"]
const params = Type.Object({ name: Type.String({ minLength: 1, maxLength: 64 }) })

const policyOut = ({ policy, ...named }: NamedPolicy) => ({ ...named, policy: writePolicy(policy) })

export const policyRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/retry-policy",
    operation("v1.retry-policy.list", "List the presets and your own policies", {
      auth: "org",
      tags,
      response: { 200: Type.Named("RetryPolicyList", Type.Object({ data: Type.Array(NamedPolicyOut) })) },
    }),
    async (request) => ({ data: (await tenant(request).policies.list()).map(policyOut) }),
  )

  app.get(
    "/retry-policy/:name",
    operation("v1.retry-policy.get", "Get a policy", {
      auth: "org",
      tags,
      params,
      response: { 200: NamedPolicyOut },
    }),
    async (request) => policyOut(await tenant(request).policies.get(request.params.name)),
  )

  app.put(
    "/retry-policy/:name",
    operation(
      "v1.retry-policy.put",
      "Create or replace a policy; endpoints that use it follow from their next attempt",
      { auth: "org", tags, params, body: PolicyIn, response: { 200: NamedPolicyOut } },
    ),
    async (request) =>
      policyOut(await tenant(request).policies.put(request.params.name, request.body as PolicyInput)),
  )

  app.delete(
    "/retry-policy/:name",
    operation("v1.retry-policy.delete", "Delete a policy that no endpoint uses", {
      auth: "org",
      tags,
      params,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      await tenant(request).policies.delete(request.params.name)
      return reply.code(204).send()
    },
  )

  app.post(
    "/retry-policy/preview",
    operation(
      "v1.retry-policy.preview",
      "When a policy would try again, and how it would protect an endpoint that fails",
      {
        auth: "org",
        // It writes nothing: keys that only read may ask too.
        capability: "ViewBase",
        isRecorded: false,
        tags,
        body: PreviewIn,
        response: { 200: PreviewOut, 404: HttpErrorOut },
      },
    ),
    async (request) => {
      const { policy, attempts } = request.body
      const { policies, context } = tenant(request)
      const preview = await policies.preview(policy as string | PolicyInput, attempts ?? 100)
      const now = context.clock.now()
      return { ...preview, times: preview.seconds.map((after) => new Date(now + after * 1000)) }
    },
  )
}
