/** Attempts: the requests of deliveries and their responses. */
import { notFound } from "../core/errors.ts"
import { optionalOneOf } from "../core/input.ts"
import type { AttemptStatus, Attempt as Row } from "../store/store.ts"
import { bySeq, type Listing, listing, type PageInput } from "./paging.ts"
import {
  CONTENT_FIELDS,
  type ContentQuery,
  optionalText,
  parseContent,
  RESPONSE_CLASSES,
  type ResponseClass,
  someOf,
} from "./query.ts"
import { date, optionalApplicationId, type ResourceContext } from "./resource-context.ts"

export interface Attempt extends Omit<Row, "seq" | "startedAt"> {
  readonly startedAt: Date
}

/** `since` and `until` are compared with the start of the attempt. */
export interface AttemptQuery extends ContentQuery, PageInput {
  /** An application, by id or uid. */
  app?: string
  delivery?: string
  endpoint?: string
  message?: string
  status?: AttemptStatus | readonly AttemptStatus[]
  /** The class of the response's status: 100 to 500, or 0 for no response. */
  responseClass?: ResponseClass
}

const STATUSES: readonly AttemptStatus[] = ["succeeded", "failed", "unknown"]
const FIELDS = [
  "app",
  "delivery",
  "endpoint",
  "message",
  "status",
  "responseClass",
  ...CONTENT_FIELDS,
] as const

export class Attempts {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** Newest first. */
  list(query: AttemptQuery = {}): Listing<Attempt> {
    const { store, orgId } = this.#context
    return listing(query, {
      fields: FIELDS,
      by: bySeq,
      read: async (asked) => {
        for (const field of ["app", "delivery", "endpoint", "message"] as const)
          optionalText(asked[field], field)
        const filter = {
          ...parseContent(asked),
          orgId,
          appId: await optionalApplicationId(this.#context, asked.app),
          deliveryId: asked.delivery,
          endpointId: asked.endpoint,
          messageId: asked.message,
          statuses: someOf(asked.status, "status", STATUSES),
          responseClass: optionalOneOf(asked.responseClass, "responseClass", RESPONSE_CLASSES),
        }
        return (page) => store.listAttempts(filter, page)
      },
      show,
    })
  }

  /** The caller has checked that the message belongs to the tenant. Rejects with `not_found`. */
  async get(messageId: string, id: string): Promise<Attempt> {
    return show(await this.#read(messageId, id))
  }

  /** Removes the response for good. */
  async expunge(messageId: string, id: string): Promise<void> {
    await this.#read(messageId, id)
    await this.#context.store.expungeAttempt(messageId, id)
  }

  async #read(messageId: string, id: string): Promise<Row> {
    const row = await this.#context.store.getAttempt(messageId, id)
    if (row === null) throw notFound("attempt", id)
    return row
  }
}

function show({ seq: _seq, ...row }: Row): Attempt {
  return { ...row, startedAt: date(row.startedAt) }
}
