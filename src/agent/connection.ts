/** One connection to the server: from the dial and the greeting to its end, which is reported once. */
import type { IncomingMessage } from "node:http"
import { type RawData, WebSocket } from "ws"
import type { Clock, Timer } from "../core/clock.ts"
import {
  type AgentFrame,
  CLOSE,
  RELAY_PROTOCOL,
  type ServerFrame,
  type WelcomeFrame,
} from "../core/relay-protocol.ts"
import type { Logger } from "../observe/log.ts"
import { VERSION } from "../version.ts"
import { again, type ConnectionEnd, closedWith, failedBy, refusedBy } from "./connection-end.ts"
import { Heartbeat } from "./heartbeat.ts"
import type { AgentSettings } from "./options.ts"
import { readServerFrame, type UnknownFrame } from "./server-frame.ts"

/** From the dial to the welcome. */
const CONNECT_MS = 30_000
/** After this, a server that does not answer a close is left. */
const CLOSE_MS = 5000
const MOST_REFUSAL_BYTES = 65_536
/** Of acknowledgements that a server does not read. */
const MOST_UNSENT_BYTES = 4 * 1024 * 1024
/** Frames of unknown kinds on one connection: a newer server may send some. */
const MOST_UNKNOWN = 1000

export type OpenFrame = Exclude<ServerFrame, WelcomeFrame>

export interface ConnectionEvents {
  welcomed(frame: WelcomeFrame): void
  received(frame: OpenFrame): void
  ended(end: ConnectionEnd): void
}

type State = "dialing" | "greeting" | "open" | "ended"

export class Connection {
  readonly #settings: AgentSettings
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #events: ConnectionEvents
  readonly #socket: WebSocket
  readonly #tooSlow: Timer
  #heartbeat: Heartbeat | null = null
  #state: State = "dialing"
  #unknown = 0

  constructor(settings: AgentSettings, clock: Clock, logger: Logger, events: ConnectionEvents) {
    this.#settings = settings
    this.#clock = clock
    this.#logger = logger
    this.#events = events
    const { url, key, ca, maxFrameBytes } = settings
    this.#socket = new WebSocket(url, RELAY_PROTOCOL, {
      headers: { authorization: `Bearer ${key}`, "user-agent": `posthorn-agent/${VERSION}` },
      maxPayload: maxFrameBytes,
      perMessageDeflate: false,
      ...(ca === null ? {} : { ca }),
    })
    const patience = `${url.origin} did not welcome the agent within ${CONNECT_MS / 1000} s`
    this.#tooSlow = clock.setTimer(CONNECT_MS, () => this.#end(again(patience)))
    this.#listen()
  }

  /** Whether it was written to an open connection. */
  send(frame: AgentFrame): boolean {
    if (this.#state !== "open" && this.#state !== "greeting") return false
    this.#socket.send(JSON.stringify(frame))
    return true
  }

  close(code: number, reason: string): void {
    this.#end(again(reason), code)
  }

  #listen(): void {
    this.#socket
      .on("open", () => this.#greet())
      .on("unexpected-response", (request, response) => {
        void this.#refused(response).finally(() => request.destroy())
      })
      .on("message", (data, isBinary) => this.#message(data, isBinary))
      .on("ping", () => this.#heard())
      .on("pong", () => this.#heard())
      .on("error", (error) => this.#end(failedBy(error, this.#settings.url, this.#settings.maxFrameBytes)))
      .on("close", (code, reason) => this.#end(closedWith(code, reason.toString())))
  }

  #greet(): void {
    this.#state = "greeting"
    this.#heartbeat = new Heartbeat(this.#clock, {
      ping: () => this.#socket.ping(),
      silent: () => this.#end(again("nothing came from the server for 45 s")),
    })
    const { name, credit } = this.#settings
    this.send({ kind: "hello", agent: name, version: `posthorn/${VERSION}`, credit })
  }

  async #refused(response: IncomingMessage): Promise<void> {
    const { url } = this.#settings
    let body = ""
    try {
      for await (const chunk of response.setEncoding("utf8")) {
        body += chunk
        if (body.length > MOST_REFUSAL_BYTES) break
      }
    } catch {
      // The status is enough.
    }
    const { statusCode: status = 0, headers } = response
    this.#end(refusedBy({ status, body, location: headers.location }, url.href))
  }

  #heard(): void {
    this.#heartbeat?.heard()
    if (this.#socket.bufferedAmount > MOST_UNSENT_BYTES)
      this.#end(again("the server does not read what the agent sends"))
  }

  #message(data: RawData, isBinary: boolean): void {
    this.#heard()
    if (this.#state === "ended") return
    if (isBinary) return this.close(CLOSE.binary, "the server sent a binary message")
    let frame: ServerFrame | UnknownFrame
    try {
      frame = readServerFrame(data.toString())
    } catch (error) {
      return this.refuse((error as Error).message)
    }
    if (frame.kind === "unknown") this.#ignore(frame)
    else if (frame.kind === "welcome") this.#welcomed(frame)
    else if (this.#state === "open") this.#events.received(frame)
    else this.refuse(`${frame.kind} came before welcome`)
  }

  /** The server broke the protocol. */
  refuse(problem: string): void {
    this.close(CLOSE.badFrame, `the server sent a bad frame: ${problem}`)
  }

  #ignore({ name }: UnknownFrame): void {
    this.#logger.debug({ kind: name }, "A frame of an unknown kind is ignored")
    if (++this.#unknown > MOST_UNKNOWN) this.refuse(`${MOST_UNKNOWN} are of unknown kinds`)
  }

  #welcomed(frame: WelcomeFrame): void {
    if (this.#state !== "greeting") return this.refuse("a second welcome")
    this.#state = "open"
    this.#tooSlow.cancel()
    this.#events.welcomed(frame)
  }

  /** Without a code the socket is cut off. */
  #end(end: ConnectionEnd, code?: number): void {
    if (this.#state === "ended") return
    const wasOpen = this.#state !== "dialing"
    this.#state = "ended"
    this.#tooSlow.cancel()
    this.#heartbeat?.stop()
    if (code === undefined || !wasOpen) this.#socket.terminate()
    else this.#leave(code, end.reason)
    this.#events.ended(end)
  }

  #leave(code: number, reason: string): void {
    const timer = this.#clock.setTimer(CLOSE_MS, () => this.#socket.terminate())
    this.#socket.on("close", () => timer.cancel())
    this.#socket.close(code, reason.slice(0, 100))
  }
}
