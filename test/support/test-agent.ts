/** An agent that a test drives by hand, on a socket in memory. */
import {
  type AckFrame,
  type AckResult,
  type EventFrame,
  RELAY_PATH,
  type ServerFrame,
} from "../../src/core/relay-protocol.ts"
import type { Posthorn } from "../../src/posthorn.ts"
import type { AgentAccess } from "../../src/relay/connected-agent.ts"
import type { AgentSession, AgentSocket } from "../../src/transport/relay/agent-session.ts"
import type { Harness } from "./harness.ts"
import { Watchers } from "./watchers.ts"

export class MemorySocket implements AgentSocket {
  bufferedBytes = 0
  pings = 0
  closedWith: { readonly code: number; readonly reason: string } | null = null
  readonly frames: ServerFrame[] = []
  readonly #watchers = new Watchers()
  readonly #sent: (() => void)[] = []

  send(text: string, sent?: () => void): void {
    this.frames.push(JSON.parse(text))
    if (sent !== undefined) this.#sent.push(sent)
    this.#watchers.changed()
  }

  /** Null: the agent is gone, and nobody answers. */
  pong: (() => void) | null = null

  ping(): void {
    this.pings++
    this.pong?.()
  }

  close(code: number, reason: string): void {
    this.closedWith ??= { code, reason }
    this.#watchers.changed()
  }

  /** The network took everything. */
  flush(): void {
    this.bufferedBytes = 0
    for (const sent of this.#sent.splice(0)) sent()
  }

  of<K extends ServerFrame["kind"]>(kind: K): Extract<ServerFrame, { kind: K }>[] {
    return this.frames.filter((frame): frame is Extract<ServerFrame, { kind: K }> => frame.kind === kind)
  }

  until(condition: () => boolean): Promise<void> {
    return this.#watchers.until(condition)
  }

  /** Resolves when this many frames of the kind have come. */
  async came<K extends ServerFrame["kind"]>(
    kind: K,
    count = 1,
  ): Promise<Extract<ServerFrame, { kind: K }>[]> {
    await this.until(() => this.of(kind).length >= count || this.closedWith !== null)
    if (this.of(kind).length < count)
      throw new Error(`closed: ${JSON.stringify(this.closedWith)} at ${RELAY_PATH}`)
    return this.of(kind)
  }
}

export class TestAgent {
  readonly socket = new MemorySocket()
  readonly session: AgentSession

  constructor(connect: (socket: AgentSocket) => AgentSession, hello: object = {}) {
    this.session = connect(this.socket)
    this.socket.pong = () => this.session.heard()
    this.say({ kind: "hello", agent: "hub", version: "test 1", ...hello })
  }

  /** Connects to the application "acme" of the harness. */
  static join(
    { posthorn }: Harness,
    hello: object = {},
    access: Partial<AgentAccess> = {},
  ): Promise<TestAgent> {
    return TestAgent.joinAt(posthorn, hello, access)
  }

  /** Connects to the application "acme". */
  static async joinAt(
    posthorn: Posthorn,
    hello: object = {},
    access: Partial<AgentAccess> = {},
  ): Promise<TestAgent> {
    const { id: appId } = await posthorn.applications.get("acme")
    const { orgId } = posthorn.context
    const owner = { orgId, appId, endpointIds: null, isStillValid: async () => true, ...access }
    const agent = new TestAgent((socket) => posthorn.agentHub!.connect(socket, owner), hello)
    await agent.socket.came("welcome")
    return agent
  }

  say(frame: object): void {
    this.session.read(JSON.stringify(frame))
  }

  /** The event with this number, from 1. */
  async event(number: number): Promise<EventFrame> {
    return (await this.socket.came("event", number))[number - 1]!
  }

  ack({ id, attempt, token }: EventFrame, result: AckResult, more: Partial<AckFrame> = {}): void {
    this.say({ kind: "ack", id, attempt, token, result, ...more })
  }

  /** Acknowledges as a hub whose program answered with this status. */
  answer(event: EventFrame, status: number): void {
    const result = status < 300 ? "success" : status >= 500 ? "transient" : "permanent"
    this.ack(event, result, { status })
  }

  /** The network goes away. */
  cut(): void {
    this.session.closed(1006)
  }
}
