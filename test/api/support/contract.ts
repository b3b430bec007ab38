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
/** Beside the API, and not described: the document itself, and its pages. */
const BESIDE = new Set(["/", "/docs", "/api/v1/openapi.json"])
/** Said before any route is found, or by none. */
const ANYWHERE = new Set([400, 401, 404, 405, 408, 413, 431, 501, 503])

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
      // Literal paths go before those with parameters.
      .sort((a, b) => a.split("{").length - b.split("{").length)
      .map((path) => [new RegExp(`^${path.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}/?$`), path])
  }

  /** Throws what does not fit. The operation that answered, or null where none could. */
  check(method: string, path: string, answer: Answered): string | null {
    const [, found] = this.#patterns.find(([pattern]) => pattern.test(path)) ?? []
    const verb = method.toLowerCase() === "head" ? "get" : method.toLowerCase()
    const operation = found === undefined ? undefined : this.#document.paths[found]?.[verb]
    const where = `${method} ${path} answered ${answer.status}`
    if (operation === undefined || found === undefined) {
      this.#checkBeside(method, path, where, answer)
      return null
    }
    const described = operation.responses[answer.status]
    if (described === undefined) throw new Error(`${where}, which ${operation.operationId} does not describe`)
    if (described.content === undefined || method === "HEAD") {
      if (answer.text !== "") throw new Error(`${where} with a body: ${answer.text}`)
      return operation.operationId
    }
    const [streamed] = Object.keys(described.content).filter((type) => type === "text/event-stream")
    if (streamed !== undefined && answer.type?.startsWith(streamed)) return operation.operationId
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
    return operation.operationId
  }

  /** A route that is not described may only refuse, with the usual error. */
  #checkBeside(method: string, path: string, where: string, answer: Answered): void {
    if (BESIDE.has(path) && answer.status < 400) return
    if (!ANYWHERE.has(answer.status)) throw new Error(`${where}, and the document has no such operation`)
    if (method !== "HEAD") this.#fits("HttpErrorOut", "#/components/schemas/HttpErrorOut", where, answer)
  }

  #fits(name: string, reference: string, where: string, { type, text }: Answered): void {
    if (!type?.startsWith("application/json")) throw new Error(`${where} as ${type}`)
    const validate = this.#compiled.get(name) ?? this.#ajv.compile({ $ref: DOCUMENT + reference })
    this.#compiled.set(name, validate)
    if (!validate(JSON.parse(text)))
      throw new Error(`${where}: ${this.#ajv.errorsText(validate.errors)}\n${text}`)
  }
}

function escapePointer(segment: string): string {
  return encodeURIComponent(segment.replaceAll("~", "~0").replaceAll("/", "~1"))
}
