/** The ranges in the OpenAPI document are those that the library checks. */
import { expect, test } from "vitest"
import { parsePolicy } from "../../core/parse-policy.ts"
import { type JsonSchema, jsonSchema, SHOWN } from "../schema.ts"
import { PolicyIn } from "./policy.ts"

const shown = jsonSchema(PolicyIn)[SHOWN] as JsonSchema

/** Some ranges depend on another field: these values leave the widest. */
const WIDEST = { breaker: { open: 1 }, budget: { tokens: 100_000, retry: 0.01 }, autoDisable: {} } as const

test.each(["breaker", "budget", "autoDisable"] as const)("every number of %s has its range", (field) => {
  const object = shown.properties![field]!.anyOf!.find(({ type }) => type === "object")!
  const numbers = Object.entries(object.properties!).filter(([, { type }]) => type !== "boolean")
  expect(numbers.length).toBeGreaterThan(1)
  for (const [name, schema] of numbers) {
    const [least, most] = [schema.minimum, schema.maximum] as [number, number]
    const policy = (value: number) => () =>
      parsePolicy({ delays: [30], maxAttempts: 3, [field]: { ...WIDEST[field], [name]: value } })
    const refused = expect.objectContaining({ field: `retry.${field}.${name}` })
    for (const value of [least, most]) expect(policy(value), name).not.toThrow()
    for (const value of [least - 0.001, most + 1]) expect(policy(value), name).toThrow(refused)
  }
})
