/** Errors by which a store refuses a call. */
import { PosthornError } from "../core/errors.ts"
import type { Entry } from "./store.ts"

function conflict(text: string, field?: string): PosthornError {
  return new PosthornError("conflict", text, { field })
}

export function applicationUidTaken(uid: string | null | undefined): PosthornError {
  return conflict(`an application with uid "${uid}" exists already`, "uid")
}

export function endpointUidTaken(uid: string | null | undefined): PosthornError {
  return conflict(`the application has an endpoint with uid "${uid}" already`, "uid")
}

export function endpointChanged(id: string): PosthornError {
  return conflict(`endpoint "${id}" was changed by somebody else; read it again`)
}

export function endpointNotDisabled(id: string): PosthornError {
  return conflict(`endpoint "${id}" is not disabled`)
}

export function policyInUse(name: string, endpointId: unknown): PosthornError {
  return conflict(`policy "${name}" is used by endpoint ${endpointId}`)
}

/** A first version that exists, or a later one whose predecessor is not the newest. */
export function entryConflict({ kind, name, version }: Entry): PosthornError {
  const problem =
    version === 1 ? "exists already; read it, and change that" : "was changed by somebody else; read it again"
  return conflict(`${kind} "${name}" ${problem}`)
}

export function eventIdTaken(eventId: string | null): PosthornError {
  return conflict(`a message with eventId "${eventId}" exists already`, "eventId")
}

export function idempotencyKeyTaken(): PosthornError {
  return conflict("this idempotency key was used for another message", "idempotencyKey")
}

export function priorityRefused(orderedEndpoint: string | null): PosthornError {
  const text = `priority cannot be given: endpoint ${orderedEndpoint} is ordered`
  return new PosthornError("invalid_input", text, { field: "priority" })
}

/** A store keeps the fingerprint of its first key; another key could not read the secrets. */
export function refuseWrongKey(bound: unknown, given: string): void {
  if (bound === given) return
  const text = `the secrets in this store were encrypted with key ${bound}, not with this one (${given}): give the key it was created with`
  throw new PosthornError("wrong_encryption_key", text)
}
