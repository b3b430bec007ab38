/** Why a connection ended or was refused: a sentence, and whether another try can mend it. */
import { CLOSE } from "../core/relay-protocol.ts"
import { printable } from "../core/text.ts"
import { networkProblem } from "./network-error.ts"

export interface ConnectionEnd {
  readonly reason: string
  /** Another try would end in the same way. */
  readonly isFinal: boolean
  /** The answer of an HTTP server that may not be Posthorn: a proxy gives it while Posthorn restarts. */
  readonly isForeign?: boolean
}

const TRUST = "give its authority with NODE_EXTRA_CA_CERTS=FILE, or with the agent's own --ca FILE"
const KEYS = 'an administrator makes one with "posthorn keys create NAME --scope agent --app APP"'
const CHECK = "check that the server runs, and that this is its address"
const UNREACHABLE = new Set(["ECONNREFUSED", "ENOTFOUND", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"])
const RETRIED_4XX = new Set([408, 425, 429])
const MOST_DETAIL = 300

export const again = (reason: string): ConnectionEnd => ({ reason, isFinal: false })
export const final = (reason: string): ConnectionEnd => ({ reason, isFinal: true })
const foreign = (reason: string): ConnectionEnd => ({ reason, isFinal: true, isForeign: true })

export interface Refusal {
  readonly status: number
  readonly body: string
  readonly location: string | undefined
}

/** The server answered the request for a WebSocket in another way. */
export function refusedBy({ status, body, location }: Refusal, url: string): ConnectionEnd {
  const detail = detailOf(body)
  const said = detail === null ? "" : `: ${detail}`
  switch (status) {
    case 401:
      return final(`${url} does not take the key${said}. It is wrong, expired or revoked; ${KEYS}`)
    case 403:
      // The server's own words have the advice.
      return final(
        `${url} does not let the key be this agent${said || `. It needs the scope agent; ${KEYS}`}`,
      )
    case 404:
      return foreign(
        `${url} was not found${said}. Is it the address of a Posthorn server that has the relay?`,
      )
    case 409:
      return final(`${url} refuses agents${said}`)
  }
  if (status >= 300 && status < 400)
    return foreign(`${url} redirects to ${shown(location ?? "nowhere")}. Give the server's final address`)
  if (status < 300)
    return foreign(`${url} answered ${status} without a WebSocket: does a proxy in between pass them?`)
  const isRetried = status >= 500 || RETRIED_4XX.has(status)
  return (isRetried ? again : foreign)(`${url} answered ${status}${said}`)
}

export function closedWith(code: number, text: string): ConnectionEnd {
  const said = text === "" ? "" : `: ${shown(text)}`
  switch (code) {
    case CLOSE.done:
    case CLOSE.goingAway:
      return again(`the server closed the connection${said}`)
    case CLOSE.badKey:
      return final(`the server refuses the key${said}; ${KEYS}`)
    case CLOSE.replaced:
      return final(
        `another agent connected with this name${said}. Stop one of them, or give it a name of its own`,
      )
    case CLOSE.badFrame:
    case CLOSE.foreignEvent:
      return final(
        `the server refuses a frame of this agent (${code})${said}. Use the same version on both sides, or report it`,
      )
    case CLOSE.silent:
      return again(`the server heard nothing from this agent for too long${said}`)
    case 1006:
      return again("the connection broke off")
    default:
      return again(`the server closed the connection with ${code}${said}`)
  }
}

/** An error of the socket or of the library `ws`. */
export function failedBy(error: Error, url: URL, maxFrameBytes: number): ConnectionEnd {
  const { code } = error as NodeJS.ErrnoException
  if (code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH")
    return again(
      `the server sent a frame of more than ${maxFrameBytes} bytes; allow more with --max-frame-bytes (maxFrameBytes)`,
    )
  if (/subprotocol/i.test(error.message))
    return final(`${url.href} does not speak posthorn.relay.v1. Is it a Posthorn server of this version?`)
  const origin = `${url.protocol.replace("ws", "http")}//${url.host}`
  const advice = UNREACHABLE.has(code ?? "") ? `; ${CHECK}` : ""
  return again(networkProblem(error, origin, TRUST) + advice)
}

function detailOf(body: string): string | null {
  try {
    const { detail } = JSON.parse(body)
    return typeof detail === "string" && detail !== "" ? shown(detail.replace(/\.$/, "")) : null
  } catch {
    return null
  }
}

const shown = (text: string) => printable(text.slice(0, MOST_DETAIL))
