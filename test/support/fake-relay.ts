/** A small server of the relay on loopback, which speaks posthorn.relay.v1 as a test says and keeps what agents send. */
import { createServer, type IncomingMessage, type Server } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo, Socket } from "node:net"
import type { Duplex } from "node:stream"
import { onTestFinished } from "vitest"
import { type WebSocket, WebSocketServer } from "ws"
import {
  type AckFrame,
  type AgentFrame,
  type EventFrame,
  RELAY_PROTOCOL,
  type ServerFrame,
} from "../../src/core/relay-protocol.ts"
import { Watchers } from "./watchers.ts"

export interface FakeRelayOptions {
  /** Certificate and key as PEM. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Welcomes each agent when its hello comes. True. */
  readonly welcomes?: boolean
  /** The subprotocol; null: none. */
  readonly protocol?: string | null
}

export interface Refusal {
  readonly status: number
  readonly body?: string
  readonly headers?: { readonly [name: string]: string }
}

export class FakeRelay {
  readonly links: FakeLink[] = []
  /** Requests for a WebSocket, the refused ones too. */
  readonly requests: IncomingMessage[] = []
  readonly #options: FakeRelayOptions
  readonly #server: Server
  readonly #sockets: WebSocketServer
  readonly #watchers = new Watchers()
  /** Answers the next requests for a WebSocket, one each. */
  readonly #refusals: Refusal[] = []

  private constructor(options: FakeRelayOptions) {
    const { protocol = RELAY_PROTOCOL } = options
    this.#options = options
    this.#sockets = new WebSocketServer({
      noServer: true,
      autoPong: false,
      handleProtocols: () => protocol ?? false,
    })
    this.#server = options.tls === undefined ? createServer() : createTlsServer({ ...options.tls })
    this.#server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head))
  }

  static async start(options: FakeRelayOptions = {}): Promise<FakeRelay> {
    const relay = new FakeRelay(options)
    await new Promise<void>((resolve) => relay.#server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => relay.close())
    return relay
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `${this.#options.tls === undefined ? "ws" : "wss"}://127.0.0.1:${this.port}`
  }

  refuse(...refusals: Refusal[]): void {
    this.#refusals.push(...refusals)
  }

  /** Resolves with the n-th connection, from 1, when its hello has come. */
  async link(n = 1): Promise<FakeLink> {
    await this.#watchers.until(() => this.links[n - 1]?.hello !== undefined)
    return this.links[n - 1]!
  }

  async close(): Promise<void> {
    for (const link of this.links) link.cut()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.requests.push(request)
    const refusal = this.#refusals.shift()
    if (refusal === undefined)
      return this.#sockets.handleUpgrade(request, socket, head, (made) =>
        this.#accept(made, socket as Socket),
      )
    const { status, body = "", headers = {} } = refusal
    const lines = Object.entries({ ...headers, connection: "close", "content-length": `${body.length}` })
    const head1 = [`HTTP/1.1 ${status} Refused`, ...lines.map(([name, value]) => `${name}: ${value}`)]
    socket.end(`${head1.join("\r\n")}\r\n\r\n${body}`)
  }

  #accept(made: WebSocket, socket: Socket): void {
    const link = new FakeLink(made, socket, this.#watchers)
    this.links.push(link)
    made.on("message", () => {
      if (link.frames.length === 1 && this.#options.welcomes !== false) link.welcome(this.links.length)
    })
  }
}

/** A connection of an agent. */
export class FakeLink {
  readonly frames: AgentFrame[] = []
  readonly #socket: WebSocket
  readonly #raw: Socket
  readonly #watchers: Watchers
  /** Whether it answers the agent's pings. */
  answersPings = true
  pings = 0
  pongs = 0
  closed: { readonly code: number; readonly reason: string } | null = null

  constructor(socket: WebSocket, raw: Socket, watchers: Watchers) {
    this.#socket = socket
    this.#raw = raw
    this.#watchers = watchers
    socket
      .on("message", (data) => this.#changed(() => this.frames.push(JSON.parse(data.toString()))))
      .on("pong", () => this.#changed(() => this.pongs++))
      .on("ping", () => {
        if (this.answersPings) socket.pong()
        this.#changed(() => this.pings++)
      })
      .on("error", () => {})
      .on("close", (code, reason) =>
        this.#changed(() => {
          this.closed = { code, reason: reason.toString() }
        }),
      )
  }

  get hello(): AgentFrame | undefined {
    return this.frames[0]
  }

  get acks(): AckFrame[] {
    return this.frames.filter((frame) => frame.kind === "ack")
  }

  until(condition: (link: FakeLink) => boolean): Promise<void> {
    return this.#watchers.until(() => condition(this))
  }

  /** Resolves with the n-th acknowledgement, from 1. */
  async ack(n = 1): Promise<AckFrame> {
    await this.until(({ acks }) => acks.length >= n)
    return this.acks[n - 1]!
  }

  welcome(epoch = 1): void {
    this.send({ kind: "welcome", session: `session-${epoch}`, epoch, heartbeat: 20 })
  }

  event(fields: Partial<EventFrame> = {}): void {
    this.send(eventFrame(fields))
  }

  settle({ id, attempt }: AckFrame, status: "delivered" | "dead" | "failed" = "delivered"): void {
    this.send({ kind: "settled", id, attempt, status })
  }

  send(frame: ServerFrame): void {
    this.raw(JSON.stringify(frame))
  }

  raw(data: string | Buffer): void {
    this.#socket.send(data)
  }

  /** Resolves when the agent has read everything that was sent before. */
  async flushed(): Promise<void> {
    const seen = this.pongs
    this.#socket.ping()
    await this.until(({ pongs }) => pongs > seen)
  }

  stopReading(): void {
    this.#socket.pause()
  }

  /** The agent's answers pile up somewhere. */
  async pingUntil(isOver: () => boolean): Promise<void> {
    const data = Buffer.alloc(125)
    while (!isOver() && this.#socket.readyState === this.#socket.OPEN) {
      for (let i = 0; i < 1000; i++) this.#socket.ping(data)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  close(code: number, reason = ""): void {
    this.#socket.close(code, reason)
  }

  /** Without a word, as a network does. */
  cut(): void {
    this.#raw.destroy()
  }

  #changed(change: () => void): void {
    change()
    this.#watchers.changed()
  }
}

let made = 0

/** Each with an id of its own. */
export function eventFrame(fields: Partial<EventFrame> = {}): EventFrame {
  made++
  return {
    kind: "event",
    id: `dlv_${made}`,
    attempt: 1,
    manual: false,
    token: `token-${made}`,
    messageId: `msg_${made}`,
    eventType: "invoice.paid",
    endpointId: "ep_1",
    sourceId: "src_1",
    receivedAt: "2031-05-18T18:00:00.000Z",
    method: "POST",
    path: "",
    query: "",
    headers: [["Content-Type", "application/json"]],
    deadline: 30_000,
    traceparent: null,
    ...(fields.base64 === undefined ? { body: '{"invoice":17}' } : {}),
    ...fields,
  } as EventFrame
}
