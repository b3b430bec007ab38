/** Attempts: the requests of deliveries and their responses. */
import { type AttemptTiming, readTiming } from "../core/attempt-timing.ts"
import { notFound } from "../core/errors.ts"
import { ifGiven, optionalOneOf, requireBoolean } from "../core/input.ts"
import type { AttemptStatus, Attempt as Row } from "../store/store.ts"
import { type BoundedInput, bySeq, type Listing, listing, MOST_SEARCHED, type PageInput } from "./paging.ts"
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

export interface Attempt extends Omit<Row, "seq" | "startedAt" | "timing"> {
  readonly startedAt: Date
  /** How long its phases took. Null for an agent, mail, and attempts that were stored before phases were measured. */
  readonly timing: AttemptTiming | null
}

/** `since` and `until` are compared with the start of the attempt. */
export interface AttemptQuery extends ContentQuery, BoundedInput, PageInput {
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
  "bounded",
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
        if (!ifGiven(asked.bounded, "bounded", requireBoolean))
          return (page) => store.listAttempts(filter, page)
        return async (page) => {
          const bound = await store.boundAttempts(filter, page, MOST_SEARCHED)
          return { rows: await store.listAttempts(bound.filter, page), end: bound.end }
        }
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
  return { ...row, startedAt: date(row.startedAt), timing: readTiming(row.timing) }
}
