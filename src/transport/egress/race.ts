/**
 * Happy Eyeballs (RFC 8305): tries the next address when one fails, or 250 ms after the one before. The first socket to connect wins, and
 * the others are destroyed. One deadline covers all of them. At most four sockets are open at once, so that a name with 32 addresses that
 * never answer does not take 32 sockets for each attempt.
 */
import type { Socket } from "node:net"
import type { Clock, Timer } from "../../core/clock.ts"
import { TransportError } from "../error.ts"
import { destroyOnAbort } from "./destroy-on-abort.ts"

const STAGGER_MS = 250
const MOST_OPEN = 4
/** Faults of our own network rather than of the receiver: a machine without IPv6 has them for every IPv6 address. */
const NO_ROUTE = new Set(["ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"])

export interface RaceOptions {
  /** At least one, in the order in which they are tried. */
  readonly addresses: readonly string[]
  readonly begin: (address: string) => Socket
  /** The event after which bytes can be written. */
  readonly ready: "connect" | "secureConnect"
  /** Why a socket that has connected must not be used, or null. A problem ends the race. */
  readonly problem: (socket: Socket) => TransportError | null
  readonly timeoutMs: number
  readonly clock: Clock
  /** Destroys every socket, also the winner later on. */
  readonly signal: AbortSignal
}

/** Resolves when bytes can be written. */
export function race(options: RaceOptions): Promise<Socket> {
  return new Race(options).result
}

class Race {
  readonly result: Promise<Socket>
  readonly #options: RaceOptions
  readonly #end: PromiseWithResolvers<Socket> = Promise.withResolvers()
  readonly #untried: string[]
  readonly #running = new Set<Socket>()
  readonly #staggerMs: number
  readonly #deadline: Timer
  #failures: Error[] = []
  #next: Timer | null = null

  constructor(options: RaceOptions) {
    const { addresses, clock, timeoutMs } = options
    this.#options = options
    this.result = this.#end.promise
    this.#untried = [...addresses]
    // Shorter than 250 ms if the fourth address would not be tried before the deadline.
    this.#staggerMs = Math.min(STAGGER_MS, timeoutMs / Math.min(addresses.length, MOST_OPEN))
    const late = `no connection to ${addresses.join(", ")} within ${timeoutMs} ms`
    this.#deadline = clock.setTimer(timeoutMs, () => this.#fail(new TransportError("timeout", late)))
    this.#tryNext()
  }

  #tryNext(): void {
    const { begin, ready, clock, signal } = this.#options
    this.#next?.cancel()
    const address = signal.aborted ? undefined : this.#untried.shift()
    if (address === undefined) {
      if (this.#running.size === 0) this.#fail(this.#cause())
      return
    }
    if (this.#running.size === MOST_OPEN) this.#giveUpOldest()
    if (this.#untried.length > 0) this.#next = clock.setTimer(this.#staggerMs, () => this.#tryNext())
    try {
      const socket = begin(address)
      this.#running.add(socket)
      socket
        .once("connect", () => this.#connected(socket))
        .once(ready, () => this.#ready(socket))
        .on("error", (error) => this.#lost(socket, error))
        .once("close", () =>
          this.#lost(socket, new TransportError("connection_reset", "closed before it was open")),
        )
      destroyOnAbort(signal, socket)
    } catch (error) {
      // A client key that cannot be read makes `begin` throw.
      this.#fail(error as Error)
    }
  }

  #giveUpOldest(): void {
    const oldest = this.#running.values().next().value!
    this.#running.delete(oldest)
    this.#failures.push(
      new TransportError("timeout", `no connection within ${MOST_OPEN * this.#staggerMs} ms`),
    )
    oldest.destroy()
  }

  #connected(socket: Socket): void {
    if (!this.#running.has(socket)) return
    const problem = this.#options.problem(socket)
    if (problem !== null) return this.#fail(problem)
    this.#next?.cancel()
    this.#untried.length = 0
    this.#failures = []
    this.#running.delete(socket)
    this.#destroyRunning()
    this.#running.add(socket)
  }

  #ready(socket: Socket): void {
    if (!this.#running.delete(socket)) return
    this.#deadline.cancel()
    this.#end.resolve(socket)
  }

  #lost(socket: Socket, error: Error): void {
    if (!this.#running.delete(socket)) return
    this.#failures.push(error)
    this.#tryNext()
  }

  #cause(): Error {
    const reached = this.#failures.find(({ code }: NodeJS.ErrnoException) => !NO_ROUTE.has(String(code)))
    return reached ?? this.#failures[0] ?? new Error("closed by shutdown")
  }

  #fail(error: Error): void {
    this.#deadline.cancel()
    this.#next?.cancel()
    this.#untried.length = 0
    this.#destroyRunning()
    this.#end.reject(error)
  }

  #destroyRunning(): void {
    const losers = [...this.#running]
    this.#running.clear()
    for (const socket of losers) socket.destroy()
  }
}
