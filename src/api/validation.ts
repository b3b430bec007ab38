/** Validates requests. The compiler is loaded, and each schema compiled, at first use, so that the start stays fast. */
import type { Check, compileCheck } from "./compile-schema.ts"
import type { Api } from "./context.ts"
import type { ApiError } from "./errors.ts"
import { dropNulls } from "./nulls.ts"
import { coerceQuery, type RawQuery } from "./query-string.ts"
import type { JsonSchema } from "./schema.ts"

let compile: typeof compileCheck | null = null

/** Undefined when the compiler is loaded. */
export function compilerLoading(): undefined | Promise<void> {
  if (compile !== null) return undefined
  return import("./compile-schema.ts").then(({ compileCheck }) => {
    compile = compileCheck
  })
}

/** Validators must be synchronous: Fastify takes a pending promise for success. */
export function loadCompiler(app: Api): void {
  app.addHook("preValidation", ({ routeOptions, query }, _reply, done) => {
    // Health checks do not wait for the compiler.
    const isPing = routeOptions.config.always && Object.keys(query as object).length === 0
    const loading = isPing ? undefined : compilerLoading()
    return loading === undefined ? done() : loading
  })
}

export interface RouteSchema {
  readonly schema: JsonSchema
  readonly httpPart?: string
}

type ValidationResult = { readonly value: unknown } | { readonly error: ApiError }

export function validatorCompiler({ schema, httpPart = "body" }: RouteSchema) {
  let check: Check | null = null
  const isQuery = httpPart === "querystring"
  const takesNothing = isQuery && Object.keys(schema.properties ?? {}).length === 0
  return (data: object): ValidationResult => {
    if (takesNothing && Object.keys(data).length === 0) return { value: data }
    check ??= compile!(schema, httpPart)
    const value = isQuery ? coerceQuery(schema, data as RawQuery) : data
    if (httpPart === "body") dropNulls(schema, value)
    const error = check(value)
    return error === null ? { value } : { error }
  }
}
