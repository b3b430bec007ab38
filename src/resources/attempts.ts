/** Attempts: every request that was made, and what came back. */
import { notFound } from "../core/errors.ts"
import { refuseUnknown, requireObject } from "../core/input.ts"
import type { AttemptStatus, Attempt as Row } from "../store/store.ts"
import {
  type List,
  type Listing,
  listing,
  listPage,
  PAGE_FIELDS,
  type PageInput,
  pageBySeq,
} from "./paging.ts"
import {
  CONTENT_FIELDS,
  type ContentQuery,
  oneOf,
  optionalText,
  parseContent,
  RESPONSE_CLASSES,
  type ResponseClass,
  someOf,
} from "./query.ts"
import { date, type ResourceContext, requireApplication } from "./resource-context.ts"

export interface Attempt extends Omit<Row, "seq" | "startedAt"> {
  readonly startedAt: Date
}

/** Times are those at which the attempt began. */
export interface AttemptQuery extends ContentQuery, PageInput {
  /** An application, by id or uid. */
  app?: string
  delivery?: string
  endpoint?: string
  message?: string
  status?: AttemptStatus | readonly AttemptStatus[]
  /** Of the answer: 0 for none, 100 to 500. */
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
  ...PAGE_FIELDS,
] as const

export class Attempts {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** Newest first. */
  list(query: AttemptQuery = {}): Listing<Attempt> {
    return listing(query, (asked) => this.#page(asked))
  }

  async #page(query: AttemptQuery): Promise<List<Attempt>> {
    requireObject(query, "query")
    refuseUnknown(query, FIELDS, "")
    for (const field of ["app", "delivery", "endpoint", "message"] as const) optionalText(query[field], field)
    const { store, orgId } = this.#context
    const filter = {
      ...parseContent(query),
      orgId,
      appId: query.app === undefined ? undefined : (await requireApplication(this.#context, query.app)).id,
      deliveryId: query.delivery,
      endpointId: query.endpoint,
      messageId: query.message,
      statuses: someOf(query.status, "status", STATUSES),
      responseClass: oneOf(query.responseClass, "responseClass", RESPONSE_CLASSES),
    }
    return listPage(
      pageBySeq(query),
      (read) => store.listAttempts(filter, read),
      ({ seq }) => seq,
      show,
    )
  }

  /** Of a message that is known to be the tenant's, by its id. Rejects with `not_found`. */
  async get(messageId: string, id: string): Promise<Attempt> {
    return show(await this.#read(messageId, id))
  }

  /** What the receiver answered is removed for good. */
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
