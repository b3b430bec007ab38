/** Retry policies by name: `/retry-policy`. */
import type { PolicyInput } from "../../core/policy.ts"
import { writePolicy } from "../../core/write-policy.ts"
import type { NamedPolicy } from "../../resources/policies.ts"
import type { Routes } from "../context.ts"
import { NoContent, Type } from "../schema.ts"
import { NamedPolicyOut, PolicyIn, PreviewIn, PreviewOut } from "../schemas/policy.ts"
import { HttpErrorOut } from "../shapes.ts"

const tags = ["Retry Policy"]
const params = Type.Object({ name: Type.String({ minLength: 1, maxLength: 64 }) })

/** In the words in which it would be put. */
const policyOut = ({ policy, ...named }: NamedPolicy) => ({ ...named, policy: writePolicy(policy) })

export const policyRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/retry-policy",
    {
      config: { auth: "org" },
      schema: {
        operationId: "v1.retry-policy.list",
        summary: "List the presets and your own policies",
        tags,
        response: {
          200: Type.Named("RetryPolicyList", Type.Object({ data: Type.Array(NamedPolicyOut) })),
        },
      },
    },
    async (request) => ({ data: (await tenant(request).policies.list()).map(policyOut) }),
  )

  app.get(
    "/retry-policy/:name",
    {
      config: { auth: "org" },
      schema: {
        operationId: "v1.retry-policy.get",
        summary: "Get a policy",
        tags,
        params,
        response: { 200: NamedPolicyOut },
      },
    },
    async (request) => policyOut(await tenant(request).policies.get(request.params.name)),
  )

  app.put(
    "/retry-policy/:name",
    {
      config: { auth: "org" },
      schema: {
        operationId: "v1.retry-policy.put",
        summary: "Create or replace a policy; endpoints that use it follow from their next attempt",
        tags,
        params,
        body: PolicyIn,
        response: { 200: NamedPolicyOut },
      },
    },
    async (request) =>
      policyOut(await tenant(request).policies.put(request.params.name, request.body as PolicyInput)),
  )

  app.delete(
    "/retry-policy/:name",
    {
      config: { auth: "org" },
      schema: {
        operationId: "v1.retry-policy.delete",
        summary: "Delete a policy that no endpoint uses",
        tags,
        params,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await tenant(request).policies.delete(request.params.name)
      return reply.code(204).send()
    },
  )

  app.post(
    "/retry-policy/preview",
    {
      config: { auth: "org" },
      schema: {
        operationId: "v1.retry-policy.preview",
        summary: "When a policy would try again",
        tags,
        body: PreviewIn,
        response: { 200: PreviewOut, 404: HttpErrorOut },
      },
    },
    async (request) => {
      const { policy, attempts } = request.body
      const seconds = await tenant(request).policies.preview(policy as string | PolicyInput, attempts ?? 100)
      const now = tenant(request).context.clock.now()
      return { seconds, times: seconds.map((after) => new Date(now + after * 1000)) }
    },
  )
}
