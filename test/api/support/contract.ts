/** Holds every answer to the OpenAPI document: one that it does not describe fails the test. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import formats from "ajv-formats"

interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
}

interface Operation {
  readonly operationId: string
  readonly responses: {
    readonly [status: string]: { readonly content?: { readonly [type: string]: unknown } }
  }
}

export interface Answered {
  readonly status: number
  readonly type: string | null
  readonly text: string
}

const DOCUMENT = "openapi"
/** Said before any route is found, or by none. */
const ANYWHERE = new Set([400, 404, 405, 408, 413, 431, 503])

export class Contract {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true })
  readonly #document: Document
  readonly #patterns: (readonly [RegExp, string])[]
  readonly #compiled = new Map<string, ValidateFunction>()

  constructor(document: Document) {
    formats.default(this.#ajv)
    this.#ajv.addSchema(document as object, DOCUMENT)
    this.#document = document
    this.#patterns = Object.keys(document.paths)
      // What is spelled out goes before what has a name in it.
      .sort((a, b) => a.split("{").length - b.split("{").length)
      .map((path) => [new RegExp(`^${path.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}/?$`), path])
  }

  /** Throws what does not fit. */
  check(method: string, path: string, answer: Answered): void {
    const [, found] = this.#patterns.find(([pattern]) => pattern.test(path)) ?? []
    const verb = method.toLowerCase() === "head" ? "get" : method.toLowerCase()
    const operation = found === undefined ? undefined : this.#document.paths[found]?.[verb]
    const where = `${method} ${path} answered ${answer.status}`
    if (operation === undefined || found === undefined) {
      if (!ANYWHERE.has(answer.status)) return
      return this.#fits("HttpErrorOut", "#/components/schemas/HttpErrorOut", where, answer)
    }
    const described = operation.responses[answer.status]
    if (described === undefined) throw new Error(`${where}, which ${operation.operationId} does not describe`)
    if (described.content === undefined || method === "HEAD") {
      if (answer.text !== "") throw new Error(`${where} with a body: ${answer.text}`)
      return
    }
    if (!answer.type?.startsWith("application/json")) throw new Error(`${where} as ${answer.type}`)
    const pointer = [
      "paths",
      found,
      verb,
      "responses",
      String(answer.status),
      "content",
      "application/json",
      "schema",
    ]
    this.#fits(
      `${verb} ${found} ${answer.status}`,
      `#/${pointer.map(escapePointer).join("/")}`,
      where,
      answer,
    )
  }

  #fits(name: string, reference: string, where: string, { text }: Answered): void {
    const validate = this.#compiled.get(name) ?? this.#ajv.compile({ $ref: DOCUMENT + reference })
    this.#compiled.set(name, validate)
    if (!validate(JSON.parse(text)))
      throw new Error(`${where}: ${this.#ajv.errorsText(validate.errors)}\n${text}`)
  }
}

function escapePointer(segment: string): string {
  return encodeURIComponent(segment.replaceAll("~", "~0").replaceAll("/", "~1"))
}
