/** Whether a JSON schema is one, by the meta-schema of its draft. */
import type { Ajv } from "ajv"

type Validator = Pick<Ajv, "validateSchema" | "errorsText" | "errors">

let loading: Promise<readonly Validator[]> | null = null

/** Loaded when the first schema comes: the validator would make the start longer. */
function validators(): Promise<readonly Validator[]> {
  loading ??= (async () => {
    const [{ Ajv2020 }, { Ajv }] = await Promise.all([import("ajv/dist/2020.js"), import("ajv")])
    // Patterns and addresses are for the readers of the catalogue, whose engines differ.
    return [new Ajv2020({ validateFormats: false }), new Ajv({ validateFormats: false })]
  })()
  return loading
}

/**
 * What is wrong with it; null for a schema of draft 6 or later. A schema says in `$schema` if it is of an older draft, and is then not
 * judged; most say nothing, so that one that fits draft 7 or 2020-12 is good.
 */
export async function schemaProblem(schema: unknown): Promise<string | null> {
  if (typeof schema === "boolean") return null
  if (typeof schema !== "object" || schema === null || Array.isArray(schema))
    return "it must be an object or a boolean"
  const { $schema, ...judged } = schema as { readonly $schema?: unknown }
  if (typeof $schema === "string" && /draft-0[1-5]/.test($schema)) return null
  const [newest, draft7] = await validators()
  if (newest!.validateSchema(judged)) return null
  const problem = newest!.errorsText(newest!.errors, { dataVar: "it", separator: "; " })
  return draft7!.validateSchema(judged) ? null : problem
}
