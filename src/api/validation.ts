/** Holds requests to their schemas. The compiler is loaded and asked when it is first needed: both would make the start longer. */
import type { Check, compileCheck } from "./check.ts"
import type { ApiError } from "./errors.ts"
import { coerceQuery, type RawQuery } from "./query.ts"
import type { Plain } from "./schema.ts"

let compile: typeof compileCheck | null = null

async function load(): Promise<void> {
  compile = (await import("./check.ts")).compileCheck
}

export interface RouteSchema {
  readonly schema: Plain
  readonly httpPart?: string
}

/** The value as the handler gets it, or what is wrong with it. */
type Verdict = { readonly value: unknown } | { readonly error: ApiError }

export function validatorCompiler({ schema, httpPart = "body" }: RouteSchema) {
  let check: Check | null = null
  const isQuery = httpPart === "querystring"
  const takesNothing = isQuery && Object.keys(schema.properties ?? {}).length === 0
  const judge = (data: unknown): Verdict => {
    check ??= compile!(schema, httpPart)
    const value = isQuery ? coerceQuery(schema, data as RawQuery) : data
    const error = check(value)
    return error === null ? { value } : { error }
  }
  return (data: object): Verdict | Promise<Verdict> => {
    // Whoever asks whether we live does not wait for the compiler.
    if (takesNothing && Object.keys(data).length === 0) return { value: data }
    return compile === null ? load().then(() => judge(data)) : judge(data)
  }
}
