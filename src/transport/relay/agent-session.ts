/** The server's end of an agent's connection: sends events, waits for their acknowledgements, and notices when the agent is gone. */
import type { Clock, Timer } from "../../core/clock.ts"
import {
  type AckFrame,
  CLOSE,
  DEAD_MS,
  type EventFrame,
  HEARTBEAT_MS,
  HELLO_MS,
  type HelloFrame,
  MOST_NOISE,
  type ServerFrame,
  type WelcomeFrame,
} from "../../core/relay-protocol.ts"
import { type AcknowledgementResult, type EndReason, endReasonOf } from "../../core/relay-results.ts"
import { INTERRUPTED } from "../result.ts"
import type { Reach, TransportResult } from "../transport.ts"
import { acknowledged } from "./acknowledged.ts"
import { parseAgentFrame } from "./agent-frames.ts"
import { Noise } from "./noise.ts"
import { cutOff, SentEvents } from "./sent-events.ts"

/** The socket, as far as a session needs it. */
export interface AgentSocket {
  /** Bytes that the network has not taken yet. */
  readonly bufferedBytes: number
  /** `sent` is called when the network has taken the frame. */
  send(text: string, sent?: () => void): void
  ping(): void
  /** Ends at once if the other side does not answer. */
  close(code: number, reason: string): void
}

export interface SessionListener {
  /** The agent says who it is; answer with `welcome`, or close the session. */
  greeted(session: AgentSession, hello: HelloFrame): void
  /** The agent takes more events, or none. */
  reachChanged(session: AgentSession): void
  /** The agent acknowledged an event; `late`: it does not count. */
  acknowledged(result: AcknowledgementResult): void
  /** Called once. `detail` is a sentence. */
  ended(session: AgentSession, reason: EndReason, detail: string): void
}

/** An event as the transport makes it; the session adds the token. */
export type NewEvent = Omit<EventFrame, "kind" | "token" | "deadline"> & Pick<EventFrame, "body">

/** `greeting`: hello has not come. `greeted`: it has, and the hub decides. `closing`: no more events are sent; those in flight go on. */
type State = "greeting" | "greeted" | "welcomed" | "closing" | "ended"

/** With this many bytes waiting for the network, no further event is started. */
const MOST_BUFFERED_BYTES = 1_048_576
/** Beyond a frame of the largest payload, the agent does not read: its connection ends with the next frame that has to be answered. */
const MOST_UNREAD_BYTES = 134_217_728
/** From hello to welcome: the store is read and written. */
const WELCOME_MS = 10_000

export class AgentSession {
  readonly connectedAt: number
  readonly #socket: AgentSocket
  readonly #clock: Clock
  readonly #newToken: () => string
  readonly #listener: SessionListener
  readonly #inFlight: SentEvents
  readonly #noise: Noise
  #state: State = "greeting"
  #credit = 0
  /** Acknowledged events whose outcomes are not written yet. */
  #unsettled = 0
  #isBufferFull = false
  #heardAtMs: number
  #timer: Timer

  constructor(socket: AgentSocket, clock: Clock, newToken: () => string, listener: SessionListener) {
    this.#socket = socket
    this.#clock = clock
    this.#newToken = newToken
    this.#listener = listener
    this.connectedAt = clock.now()
    this.#heardAtMs = clock.elapsedMs()
    this.#noise = new Noise(clock)
    this.#inFlight = new SentEvents(clock, () => {
      this.#listener.reachChanged(this)
      this.#endIfDone()
    })
    this.#timer = clock.setTimer(HELLO_MS, () => this.end(CLOSE.silent, "no hello within 10 seconds"))
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  get reach(): Reach {
    if (this.#state !== "welcomed") return "absent"
    const isFull = this.#socket.bufferedBytes >= MOST_BUFFERED_BYTES
    if (isFull) this.#isBufferFull = true
    return isFull || this.#inFlight.size >= this.#credit ? "busy" : "open"
  }

  get isEnded(): boolean {
    return this.#state === "ended"
  }

  welcome(welcome: Omit<WelcomeFrame, "kind" | "heartbeat">): void {
    if (this.#state !== "greeted") return
    this.#state = "welcomed"
    this.#send({ kind: "welcome", ...welcome, heartbeat: HEARTBEAT_MS / 1000 })
    this.#beat()
  }

  /** The result is `interrupted` if the connection ends before the acknowledgement. */
  deliver(event: NewEvent, timeoutMs: number): Promise<TransportResult> {
    if (this.#state !== "welcomed") return Promise.resolve(cutOff("the agent is not connected"))
    const token = this.#newToken()
    const result = this.#inFlight.add({ ...event, token }, timeoutMs)
    this.#send({ ...event, kind: "event", token, deadline: timeoutMs } as EventFrame, () => this.#drained())
    return result
  }

  /** A text message came in. */
  read(text: string): void {
    this.heard()
    if (this.#state === "ended") return
    const parsed = parseAgentFrame(text)
    if (parsed.kind === "bad") return this.end(CLOSE.badFrame, parsed.problem)
    if (parsed.kind === "unknown") {
      const detail = `this server does not know the kind "${parsed.name}"`
      if (!this.#isFlood()) this.#send({ kind: "error", code: "unknown_kind", detail, id: null })
      return
    }
    const { frame } = parsed
    // Each hello writes to the store: a second one during the first would bind one connection to two agents.
    if (this.#state === "greeted" || (frame.kind === "hello") !== (this.#state === "greeting"))
      return this.end(CLOSE.badFrame, "the first frame must be hello, and the next one comes after welcome")
    switch (frame.kind) {
      case "hello":
        return this.#greeted(frame)
      case "ack":
        return this.#acknowledged(frame)
      case "working":
        return this.#isFlood() ? undefined : this.#inFlight.extend(frame.id, frame.token)
      case "credit":
        if (this.#isFlood()) return
        this.#credit = frame.n
        return this.#listener.reachChanged(this)
      case "drain":
        return this.#isFlood() ? undefined : this.close()
      default:
        return frame satisfies never
    }
  }

  /** A ping or pong of the agent's. The socket answers pings. */
  pinged(): void {
    this.heard()
    this.#isFlood()
  }

  heard(): void {
    this.#heardAtMs = this.#clock.elapsedMs()
  }

  /** Sends no more events. The connection ends when those in flight are settled. */
  close(): void {
    if (this.#state !== "welcomed") return
    this.#state = "closing"
    this.#listener.reachChanged(this)
    this.#endIfDone()
  }

  /** Asks the agent to leave: this server stops. */
  drain(): void {
    if (this.#state !== "welcomed") return
    this.#send({ kind: "drain" })
    this.close()
  }

  /** Cuts off the events in flight, and returns their number. */
  interrupt(): number {
    return this.#inFlight.cutOff(INTERRUPTED.message)
  }

  /** Closes the connection. `detail` is a sentence for the agent. */
  end(code: number, detail: string): void {
    if (this.#state === "ended") return
    this.#state = "ended"
    // A close frame holds 123 bytes.
    this.#socket.close(code, Buffer.from(detail).subarray(0, 120).toString("utf8"))
    this.#end(endReasonOf(code), detail)
  }

  /** The agent closed the connection, or the network did (1006). */
  closed(code: number): void {
    if (this.#state !== "ended") this.#end(endReasonOf(code), `the agent closed the connection with ${code}`)
  }

  #end(reason: EndReason, detail: string): void {
    this.#state = "ended"
    this.#timer.cancel()
    this.#inFlight.cutOff("the agent's connection ended")
    this.#listener.ended(this, reason, detail)
  }

  #greeted(hello: HelloFrame): void {
    this.#state = "greeted"
    this.#credit = hello.credit
    this.#timer.cancel()
    this.#timer = this.#clock.setTimer(WELCOME_MS, () =>
      this.end(CLOSE.unavailable, "the server could not take the agent within 10 seconds"),
    )
    this.#listener.greeted(this, hello)
  }

  #acknowledged(ack: AckFrame): void {
    const { id, attempt } = ack
    const found = this.#inFlight.take(ack)
    if (found.kind === "foreign")
      return this.end(CLOSE.foreignEvent, "ack of an event that this connection was not sent")
    if (found.kind === "late") {
      this.#listener.acknowledged("late")
      if (this.#isFlood()) return
      const detail = "the event is not in flight any more: its deadline passed, or it was acknowledged before"
      return this.#send({ kind: "error", code: "late", detail, id })
    }
    this.#listener.acknowledged(ack.result)
    this.#unsettled++
    found.resolve({
      ...acknowledged(ack),
      settled: (status) => {
        this.#unsettled--
        this.#send({ kind: "settled", id, attempt, status })
        this.#endIfDone()
      },
    })
    this.#listener.reachChanged(this)
  }

  #endIfDone(): void {
    if (this.#state === "closing" && this.#inFlight.size + this.#unsettled === 0)
      this.end(CLOSE.done, "all events are settled")
  }

  /** The network took a frame: lanes may wait for that. */
  #drained(): void {
    if (!this.#isBufferFull || this.#socket.bufferedBytes >= MOST_BUFFERED_BYTES) return
    this.#isBufferFull = false
    if (this.#state === "welcomed") this.#listener.reachChanged(this)
  }

  #beat(): void {
    this.#timer.cancel()
    if (this.#state === "ended") return
    const silentMs = this.#clock.elapsedMs() - this.#heardAtMs
    if (silentMs >= DEAD_MS) return this.end(CLOSE.silent, "the agent did not answer for 45 seconds")
    this.#socket.ping()
    const nextMs = Math.min(HEARTBEAT_MS, DEAD_MS - silentMs)
    this.#timer = this.#clock.setTimer(nextMs, () => this.#beat())
  }

  /** True: the connection was closed. */
  #isFlood(): boolean {
    const isSlow = this.#socket.bufferedBytes > MOST_UNREAD_BYTES
    if (!this.#noise.isFloodWithThis() && !isSlow) return false
    const why = isSlow
      ? "the agent does not read"
      : `more than ${MOST_NOISE} frames without a use in 10 seconds`
    this.end(CLOSE.flood, why)
    return true
  }

  #send(frame: ServerFrame, sent?: () => void): void {
    if (this.#state !== "ended") this.#socket.send(JSON.stringify(frame), sent)
  }
}
