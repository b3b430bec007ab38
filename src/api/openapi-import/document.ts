/** An imported OpenAPI document: resolves its references. */
import { invalid, type PosthornError } from "../../core/errors.ts"
import { standalone } from "./standalone-schema.ts"

export type Json = { readonly [key: string]: unknown }

export class OpenApiDocument {
  readonly #spec: Json
  readonly #at: string

  constructor(spec: Json, at: string) {
    this.#spec = spec
    this.#at = at
  }

  object(given: unknown, where: string): Json {
    const followed = new Set<string>()
    let node = given
    while (isObject(node) && typeof node.$ref === "string") {
      if (followed.has(node.$ref)) throw this.wrong(where, `refers to itself by ${node.$ref}`)
      followed.add(node.$ref)
      node = this.#find(node.$ref, where)
    }
    if (!isObject(node)) throw this.wrong(where, "must be an object")
    return node
  }

  optional(given: unknown, where: string): Json {
    return given === undefined || given === null ? {} : this.object(given, where)
  }

  schema(given: unknown, where: string): Json {
    return standalone(this.object(given, where), {
      find: (reference) => this.object(this.#find(reference, where), where),
      wrong: (problem) => this.wrong(where, problem),
    })
  }

  wrong(where: string, problem: string): PosthornError {
    return invalid(`${this.#at}.${where}`, problem)
  }

  #find(reference: string, where: string): unknown {
    if (!reference.startsWith("#/"))
      throw this.wrong(where, `refers to ${reference}, which is outside the document; bundle it first`)
    let node: unknown = this.#spec
    for (const part of reference.slice(2).split("/")) {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~")
      node = isObject(node) && Object.hasOwn(node, key) ? node[key] : undefined
    }
    if (node === undefined) throw this.wrong(where, `refers to ${reference}, which is not in the document`)
    return node
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
