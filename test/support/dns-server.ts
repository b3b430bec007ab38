/** A real DNS server on loopback, over UDP and TCP, that answers as a test says and keeps a log of what it was asked. */
import { createSocket, type Socket as UdpSocket } from "node:dgram"
import { once } from "node:events"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { type DnsRecord, type Question, type Reply, readQuestion, TYPES, writeReply } from "./dns-message.ts"

export interface Query {
  readonly name: string
  readonly type: "A" | "AAAA" | "other"
  readonly over: "udp" | "tcp"
}

/** Answers nobody can connect to: errors, no record of the type asked for, silence, and bytes that are no DNS. */
export type Failure = "nxdomain" | "servfail" | "refused" | "empty" | "tarpit" | "garbage"

export interface Records {
  /** Missing fields are empty. */
  readonly a?: readonly string[] | Failure
  readonly aaaa?: readonly string[] | Failure
  /** Followed here, as a recursive server does, to what this server answers for that name. */
  readonly cname?: string
  readonly ttlSeconds?: number
  /** Over UDP it says only that the answer is too long, whatever its length. */
  readonly truncated?: boolean
}

export type Answer = Records | Failure

type Respond = (reply: Reply | Buffer, truncated: boolean) => void

const TTL_SECONDS = 60
const LONGEST_CHAIN = 16

export class DnsServer {
  readonly queries: Query[] = []
  readonly #udp: UdpSocket = createSocket("udp4")
  readonly #tcp: Server
  readonly #connections = new Set<Socket>()
  readonly #answers = new Map<string, readonly Answer[]>()
  /** How often each name and type was answered: sequences advance by it. */
  readonly #answered = new Map<string, number>()
  readonly #held = new Map<string, (() => void)[]>()
  readonly #watchers = new Set<() => void>()

  private constructor() {
    this.#udp.on("message", (message, { address, port }) => {
      const question = readQuestion(message)
      this.#asked(question, "udp", (reply, truncated) => {
        if (Buffer.isBuffer(reply)) return void this.#udp.send(reply, port, address)
        const whole = writeReply(question, reply)
        const cut = truncated || whole.length > question.udpBytes
        this.#udp.send(cut ? writeReply(question, reply, true) : whole, port, address)
      })
    })
    this.#tcp = createServer((socket) => this.#connected(socket))
  }

  static async start(): Promise<DnsServer> {
    // Both need the same port; one that is free for TCP may be taken for UDP.
    for (;;) {
      const server = new DnsServer()
      await once(server.#tcp.listen(0, "127.0.0.1"), "listening")
      try {
        await once(server.#udp.bind(server.#port, "127.0.0.1"), "listening")
        return server
      } catch {
        await server.close()
      }
    }
  }

  get #port(): number {
    return (this.#tcp.address() as AddressInfo).port
  }

  /** As `Resolver.setServers` takes it. */
  get address(): string {
    return `127.0.0.1:${this.#port}`
  }

  /**
   * The answers for a name, which is otherwise unknown (NXDOMAIN). Given several, each query takes the next, A and AAAA by
   * themselves, and the last one stays.
   */
  answer(name: string, ...answers: [Answer, ...Answer[]]): void {
    this.#answers.set(name, answers)
    for (const type of ["A", "AAAA", "other"]) this.#answered.delete(`${type} ${name}`)
  }

  /** Keeps what is asked about a name waiting. The function that comes back answers all of it, and from then on at once. */
  hold(name: string): () => void {
    const waiting: (() => void)[] = []
    this.#held.set(name, waiting)
    return () => {
      this.#held.delete(name)
      for (const answer of waiting) answer()
    }
  }

  about(name: string): Query[] {
    return this.queries.filter((query) => query.name === name)
  }

  /** Resolves when at least so many queries about names that end like this have come. */
  asked(ending: string, count: number): Promise<void> {
    let read = 0
    let found = 0
    return new Promise((resolve) => {
      const check = () => {
        for (; read < this.queries.length; read++) if (this.queries[read]!.name.endsWith(ending)) found++
        if (found < count) return
        this.#watchers.delete(check)
        resolve()
      }
      this.#watchers.add(check)
      check()
    })
  }

  async close(): Promise<void> {
    for (const socket of this.#connections) socket.destroy()
    if (this.#tcp.listening) this.#udp.close()
    await new Promise((resolve) => this.#tcp.close(resolve))
  }

  #connected(socket: Socket): void {
    this.#connections.add(socket)
    socket.on("close", () => this.#connections.delete(socket)).on("error", () => {})
    let unread: Buffer = Buffer.alloc(0)
    socket.on("data", (chunk) => {
      unread = Buffer.concat([unread, chunk])
      while (unread.length >= 2 && unread.length >= 2 + unread.readUInt16BE(0)) {
        const end = 2 + unread.readUInt16BE(0)
        const question = readQuestion(unread.subarray(2, end))
        unread = unread.subarray(end)
        this.#asked(question, "tcp", (reply) => {
          const message = Buffer.isBuffer(reply) ? reply : writeReply(question, reply)
          const length = Buffer.alloc(2)
          length.writeUInt16BE(message.length)
          socket.write(Buffer.concat([length, message]))
        })
      }
    })
  }

  #asked(question: Question, over: Query["over"], respond: Respond): void {
    const { name } = question
    const type = question.type === TYPES.A ? "A" : question.type === TYPES.AAAA ? "AAAA" : "other"
    this.queries.push({ name, type, over })
    const waiting = this.#held.get(name)
    if (waiting !== undefined) waiting.push(() => this.#answer(question, type, over, respond))
    else this.#answer(question, type, over, respond)
    for (const watcher of this.#watchers) watcher()
  }

  #answer(question: Question, type: Query["type"], over: Query["over"], respond: Respond): void {
    const records: DnsRecord[] = []
    let { name } = question
    let answer = this.#next(name, type, over)
    while (typeof answer === "object" && answer.cname !== undefined && records.length < LONGEST_CHAIN) {
      records.push({ name, type: "CNAME", data: answer.cname, ttl: answer.ttlSeconds ?? TTL_SECONDS })
      name = answer.cname
      answer = this.#next(name, type, over)
    }
    const { ttlSeconds = TTL_SECONDS, truncated = false } = typeof answer === "object" ? answer : {}
    const found = typeof answer === "string" ? answer : ((type === "A" ? answer.a : answer.aaaa) ?? "empty")
    if (found === "tarpit") return
    if (found === "garbage") return respond(garbage(question), false)
    if (found === "empty" || type === "other") return respond({ rcode: "ok", records }, truncated)
    if (typeof found === "string") return respond({ rcode: found, records }, truncated)
    for (const data of found) records.push({ name, type, data, ttl: ttlSeconds })
    respond({ rcode: "ok", records }, truncated)
  }

  /** A query that is repeated over TCP after a truncated answer gets the same answer. */
  #next(name: string, type: Query["type"], over: Query["over"]): Answer {
    const answers = this.#answers.get(name) ?? (["nxdomain"] as const)
    const key = `${type} ${name}`
    const before = this.#answered.get(key) ?? 0
    if (over === "udp") this.#answered.set(key, before + 1)
    return answers[Math.min(over === "udp" ? before : before - 1, answers.length - 1)]!
  }
}

/** The right id, so that it is taken for an answer, and then nothing that could be one. */
function garbage(question: Question): Buffer {
  const bytes = Buffer.alloc(64, 0xff)
  bytes.writeUInt16BE(question.id, 0)
  return bytes
}
