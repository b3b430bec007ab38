/** What is done about a request on the short way: by the same functions as on the ordinary one. */
import type { Logger } from "../../observe/log.ts"
import type { Posthorn } from "../../posthorn.ts"
import { requireScope } from "../access.ts"
import type { Identify } from "../auth.ts"
import { parseJson } from "../body.ts"
import type { Caller } from "../caller.ts"
import { answerTo, logRefusal } from "../errors.ts"
import { idOf } from "../logging.ts"
import { inTime, type Places, type Slot } from "../overload.ts"
import { type Posted, postMessage, SENDING } from "../routes/messages.ts"
import { plain } from "../schema.ts"
import { MessageIn } from "../schemas/message.ts"
import { compilerLoading, validatorCompiler } from "../validation.ts"
import type { Answer } from "./answer.ts"
import type { Head } from "./head.ts"

export interface ClerkParts {
  readonly posthorn: Posthorn
  readonly identify: Identify
  readonly places: Places
  readonly logger: Logger
  readonly bodyLimit: number
}

/** A request that will be answered here. */
export interface Admitted {
  readonly caller: Caller
  readonly posted: Posted
  readonly slot: Slot
  readonly requestId: string
  readonly url: string
  readonly startedAt: number
}

export class Clerk {
  readonly #parts: ClerkParts
  readonly #validate = validatorCompiler({ schema: plain(MessageIn) })

  constructor(parts: ClerkParts) {
    this.#parts = parts
  }

  /** Null for one on which nothing is done here, whatever the reason. */
  admit(head: Head, request: Buffer): Admitted | null | Promise<Admitted | null> {
    const loading = compilerLoading()
    try {
      const caller = this.#parts.identify(head.authorization)
      if (loading === undefined && !(caller instanceof Promise)) return this.#admit(head, request, caller)
      return Promise.all([caller, loading]).then(
        ([known]) => this.#admit(head, request, known),
        () => null,
      )
    } catch {
      return null
    }
  }

  #admit(head: Head, request: Buffer, caller: Caller): Admitted | null {
    const rawBody = request.subarray(head.bodyFrom, head.bodyTo)
    const { places, bodyLimit } = this.#parts
    if (rawBody.length > bodyLimit || !places.hasRoomFor(rawBody.length)) return null
    let body: MessageIn
    try {
      requireScope(caller, "POST", SENDING)
      body = parseJson(rawBody) as MessageIn
    } catch {
      return null
    }
    if ("error" in this.#validate(body)) return null
    const slot = places.take()
    if (slot === null) return null
    slot.expectBody(rawBody.length)
    const { app, idempotencyKey, url } = head
    return {
      caller,
      posted: { app, body, rawBody, idempotencyKey, withContent: true },
      slot,
      requestId: idOf(head.requestId),
      url,
      startedAt: performance.now(),
    }
  }

  async answer(admitted: Admitted): Promise<Answer> {
    const { slot, posted, caller, requestId } = admitted
    let answer: Answer
    try {
      const tenant = this.#parts.posthorn.tenant(caller.orgId)
      const body = await inTime(admitted, postMessage(tenant, posted))
      answer = { status: 202, requestId, retryAfterSeconds: null, body }
    } catch (error) {
      answer = this.#refuse(error, admitted)
    }
    slot.leave()
    this.#log(admitted, answer.status)
    return answer
  }

  #refuse(error: unknown, { posted, requestId }: Admitted): Answer {
    const asked = { id: requestId, params: { app_id: posted.app }, query: {}, body: posted.body }
    const refusal = answerTo(error, asked)
    logRefusal(error, refusal, this.#parts.logger.child({ requestId }))
    const { status, retryAfterSeconds, body } = refusal
    return { status, requestId, retryAfterSeconds, body: JSON.stringify(body) }
  }

  #log({ url, caller, requestId, startedAt }: Admitted, status: number): void {
    const { logger } = this.#parts
    if (!logger.isLevelEnabled("info")) return
    logger.info(
      {
        requestId,
        method: "POST",
        url,
        status,
        durationMs: Math.round(performance.now() - startedAt),
        organization: caller.orgId,
        key: caller.keyId ?? undefined,
      },
      "request",
    )
  }
}
