/** What is done about a request on the short way: by the same functions as on the ordinary one, and in the same order. */
import type { Logger } from "../../observe/log.ts"
import type { Posthorn } from "../../posthorn.ts"
import { requireScope } from "../access.ts"
import type { Identify } from "../auth.ts"
import { readJson } from "../body.ts"
import type { Caller } from "../caller.ts"
import { PREFIX } from "../context.ts"
import { answerTo, logRefusal, type Requested } from "../errors.ts"
import { requestIdOf } from "../logging.ts"
import { inTime, type Places, type Slot } from "../overload.ts"
import { postMessage, SENDING } from "../routes/messages.ts"
import { plain } from "../schema.ts"
import { MessageIn } from "../schemas/message.ts"
import { compilerLoading, validatorCompiler } from "../validation.ts"
import type { Answer } from "./answer.ts"
import type { Head } from "./head.ts"

interface Parts {
  readonly posthorn: Posthorn
  readonly identify: Identify
  readonly places: Places
  readonly logger: Logger
}

/** What is known of a request by and by. */
interface Known extends Requested {
  body: MessageIn | undefined
  caller: Caller | null
  slot: Slot | null
}

export class Clerk {
  readonly #parts: Parts
  readonly #validate = validatorCompiler({ schema: plain(MessageIn) })

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Never rejects. */
  async answer(head: Head, rawBody: Buffer): Promise<Answer> {
    const startedAt = performance.now()
    const id = requestIdOf(head.requestId)
    const known: Known = {
      id,
      params: { app_id: head.app },
      query: {},
      body: undefined,
      caller: null,
      slot: null,
    }
    let answer: Answer
    try {
      const body = await this.#post(head, rawBody, known)
      answer = { status: 202, requestId: id, retryAfterSeconds: null, body }
    } catch (error) {
      answer = this.#refuse(error, known)
    }
    known.slot?.leave()
    this.#log(head, known, answer.status, startedAt)
    return answer
  }

  async #post(head: Head, rawBody: Buffer, known: Known): Promise<string> {
    const { places, identify, posthorn } = this.#parts
    known.slot = places.take()
    const identified = identify(head.authorization)
    known.caller = identified instanceof Promise ? await inTime(known, identified) : identified
    requireScope(known.caller, "POST", SENDING)
    places.expectBody(known.slot, rawBody.length)
    const loading = compilerLoading()
    if (loading !== undefined) await loading
    // As the framework does it: nothing is checked as null.
    const verdict = this.#validate((readJson(rawBody) ?? null) as MessageIn)
    if ("error" in verdict) throw verdict.error
    const body = verdict.value as MessageIn
    known.body = body
    const { app, idempotencyKey } = head
    const posted = { app, body, rawBody, idempotencyKey, withContent: true }
    return inTime(known, postMessage(posthorn.tenant(known.caller.orgId), posted))
  }

  #refuse(error: unknown, known: Known): Answer {
    const refusal = answerTo(error, known)
    logRefusal(error, refusal, this.#parts.logger.child({ requestId: known.id }))
    const { status, retryAfterSeconds, body } = refusal
    return { status, requestId: known.id, retryAfterSeconds, body: JSON.stringify(body) }
  }

  #log({ app }: Head, { id, caller }: Known, status: number, startedAt: number): void {
    const { logger } = this.#parts
    if (!logger.isLevelEnabled("info")) return
    const durationMs = Math.round(performance.now() - startedAt)
    const url = `${PREFIX}/app/${app}/msg`
    const about = { method: "POST", url, status, durationMs, organization: caller?.orgId }
    logger.info({ requestId: id, ...about, key: caller?.keyId ?? undefined }, "request")
  }
}
