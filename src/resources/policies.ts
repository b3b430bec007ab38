/** Retry policies with a name. */
import { previewSchedule } from "../core/backoff.ts"
import { invalid, notFound } from "../core/errors.ts"
import { requireName } from "../core/input.ts"
import { parsePolicy } from "../core/parse-policy.ts"
import { type Policy, type PolicyInput, readPolicy } from "../core/policy.ts"
import { isPreset, PRESETS } from "../core/presets.ts"
import { type ProtectionPreview, previewProtection } from "../core/protection-preview.ts"
import { type WholeListing, wholeListing } from "./paging.ts"
import type { ResourceContext } from "./resource-context.ts"

export interface NamedPolicy {
  readonly name: string
  readonly policy: Policy
  /** One of Posthorn's own five, which cannot be changed. */
  readonly preset: boolean
}

export interface PolicyPreview {
  /** The start of each attempt, in seconds after the first, without jitter. */
  readonly seconds: number[]
  readonly protection: ProtectionPreview
}

export class Policies {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** Creates or replaces it. Endpoints with this policy use the new one from their next settle. */
  async put(name: string, input: PolicyInput): Promise<NamedPolicy> {
    return this.#save(parseNamed(name, input, "policy"))
  }

  /** By name. Writes nothing unless all are valid. `at` begins the field names of errors. */
  async putAll(policies: { readonly [name: string]: PolicyInput }, at = "policies"): Promise<void> {
    const parsed = Object.entries(policies).map(([name, input]) => parseNamed(name, input, `${at}.${name}`))
    for (const policy of parsed) await this.#save(policy)
  }

  async #save({ name, policy }: Omit<NamedPolicy, "preset">): Promise<NamedPolicy> {
    await this.#context.store.putPolicy({
      orgId: this.#context.orgId,
      name,
      policy: JSON.stringify(policy),
      updatedAt: this.#context.clock.now(),
    })
    return { name, policy, preset: false }
  }

  async get(name: string): Promise<NamedPolicy> {
    if (isPreset(name)) return { name, policy: PRESETS[name], preset: true }
    const row = await this.#context.store.getPolicy(this.#context.orgId, name)
    if (row === null) throw notFound("policy", name)
    return { name, policy: readPolicy(row.policy), preset: false }
  }

  list(): WholeListing<NamedPolicy> {
    return wholeListing(this.#all())
  }

  async #all(): Promise<NamedPolicy[]> {
    const presets = Object.entries(PRESETS).map(([name, policy]) => ({ name, policy, preset: true }))
    const rows = await this.#context.store.listPolicies(this.#context.orgId)
    return [
      ...presets,
      ...rows.map(({ name, policy }) => ({ name, policy: readPolicy(policy), preset: false })),
    ]
  }

  /** Refused with `conflict` while an endpoint uses it. */
  async delete(name: string): Promise<void> {
    if (isPreset(name)) throw invalid("name", "is that of a preset, which cannot be deleted")
    await this.#context.store.deletePolicyIfUnused(this.#context.orgId, name)
  }

  /** What a policy would do: when it tries, and how it protects an endpoint that fails. */
  async preview(given: string | PolicyInput, attempts = 100): Promise<PolicyPreview> {
    const policy = typeof given === "string" ? (await this.get(given)).policy : parsePolicy(given, "policy")
    return { seconds: previewSchedule(policy, attempts), protection: previewProtection(policy) }
  }
}

function parseNamed(name: string, input: PolicyInput, at: string): Omit<NamedPolicy, "preset"> {
  requireName(name, "name", 64)
  if (isPreset(name)) throw invalid("name", `"${name}" is that of a preset; choose another`)
  return { name, policy: parsePolicy(input, at) }
}
