/** The WebSocket of agents, `/api/v1/relay`: checks the key before the upgrade, then gives the connection to the hub. */
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { type WebSocket, WebSocketServer } from "ws"
import {
  CLOSE,
  MOST_AGENT_FRAME_BYTES,
  MOST_NOISE,
  RELAY_PATH,
  RELAY_PROTOCOL,
} from "../core/relay-protocol.ts"
import type { ConnectionRefusal } from "../core/relay-results.ts"
import type { Logger } from "../observe/log.ts"
import type { Posthorn } from "../posthorn.ts"
import type { AgentSocket } from "../relay/agent-hub.ts"
import { AgentPlaces } from "./agent-places.ts"
import { type Identify, isStillValid } from "./auth.ts"
import type { Caller } from "./caller.ts"
import { ApiError, errorResponse, logFailure } from "./errors.ts"
import { requestId } from "./logging.ts"

interface RelaySocketParts {
  readonly posthorn: Posthorn
  readonly identify: Identify
  readonly logger: Logger
  isClosing(): boolean
}

/** How long a closed socket may take to answer the close frame. */
const CLOSE_TIMEOUT_MS = 5000

/** By the code of the error. */
const CLOSE_CODES: { readonly [code: string]: number } = {
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: CLOSE.tooBig,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: CLOSE.flood,
}

/** For the check of a key, and for a refusal to be sent. */
const ADMISSION_TIMEOUT_MS = 10_000

const SERVER_OPTIONS = {
  noServer: true,
  clientTracking: false,
  maxPayload: MOST_AGENT_FRAME_BYTES,
  // A fragmented frame takes no more memory than a whole one.
  maxFragments: 64,
  // By default ws cuts a connection after 60 pings in one read, without a reason. The session closes it with one; this bounds the pongs
  // that an agent does not read.
  maxPendingAutoPongs: 2 * MOST_NOISE,
  perMessageDeflate: false,
  closeTimeout: CLOSE_TIMEOUT_MS,
  handleProtocols: () => RELAY_PROTOCOL,
}

/** For Node's option `shouldUpgradeCallback`: requests for other upgrades, such as Java's to HTTP/2, are answered as plain HTTP/1.1. */
export function isRelayUpgrade({ url, headers }: IncomingMessage): boolean {
  return url?.split("?", 1)[0] === RELAY_PATH && headers.upgrade?.toLowerCase() === "websocket"
}

/** The listener of the server's `upgrade` event. */
export function relaySocket(parts: RelaySocketParts) {
  const server = new WebSocketServer(SERVER_OPTIONS)
  const places = new AgentPlaces()
  return async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const id = requestId(request)
    // A reset while the key is checked.
    socket.on("error", () => socket.destroy())
    // Node's timeouts of requests do not hold for an upgrade.
    const deadline = setTimeout(() => socket.destroy(), ADMISSION_TIMEOUT_MS)
    socket.once("close", () => clearTimeout(deadline))
    try {
      places.take(socket)
      const caller = await admit(parts, request)
      if (socket.destroyed) return
      places.takeOf(caller.appId, socket)
      clearTimeout(deadline)
      server.handleUpgrade(request, socket, head, (client) => accept(parts, request, client, caller))
    } catch (error) {
      parts.posthorn.context.instruments.agentConnection(`refused_${refusalOf(error)}`)
      const refusal = errorResponse(error, { id, params: {}, query: {}, body: undefined })
      logFailure(error, refusal, parts.logger.child({ requestId: id }))
      refuse(socket, refusal)
    }
  }
}

function refusalOf(error: unknown): ConnectionRefusal {
  switch (error instanceof ApiError ? error.status : 0) {
    case 400:
      return "protocol"
    case 401:
    case 403:
      return "key"
    case 409:
      return "elsewhere"
    default:
      return "unavailable"
  }
}

async function admit({ posthorn, identify, isClosing }: RelaySocketParts, request: IncomingMessage) {
  if (isClosing()) throw ApiError.of(503, "closing", "the server is stopping; try again", 1)
  const caller = await identify(request.headers)
  if (caller.access !== "agent" || caller.appId === null)
    throw ApiError.of(
      403,
      "insufficient access",
      "this key is not an agent's: create one with posthorn keys create NAME --scope agent --app APP",
    )
  if (posthorn.agentHub === null)
    throw ApiError.of(
      409,
      "relay_elsewhere",
      "this process does not deliver, and on SQLite only the process that delivers can hold agents: connect to its server",
    )
  const protocols = request.headers["sec-websocket-protocol"]?.split(",").map((one) => one.trim()) ?? []
  if (!protocols.includes(RELAY_PROTOCOL))
    throw ApiError.of(400, "generic_error", `the subprotocol must be ${RELAY_PROTOCOL}`)
  return { ...caller, appId: caller.appId }
}

function accept(
  { posthorn, identify }: RelaySocketParts,
  { headers }: IncomingMessage,
  client: WebSocket,
  caller: Caller & { readonly appId: string },
): void {
  const session = posthorn.agentHub!.connect(new ClientSocket(client), {
    orgId: caller.orgId,
    appId: caller.appId,
    endpointIds: caller.endpointIds,
    isStillValid: () => isStillValid(identify, headers),
  })
  client.on("message", (data, isBinary) => {
    if (isBinary) session.end(CLOSE.binary, "frames must be text")
    else session.read(String(data))
  })
  client.on("ping", () => session.pinged())
  client.on("pong", () => session.pinged())
  client.on("error", (error: NodeJS.ErrnoException) => {
    const { code = "", message } = error
    // The socket closes itself with a code of its own. Errors of the network end it.
    if (code.startsWith("WS_ERR_")) session.end(CLOSE_CODES[code] ?? CLOSE.badFrame, message)
  })
  client.on("close", (code) => session.closed(code))
}

class ClientSocket implements AgentSocket {
  readonly #client: WebSocket

  constructor(client: WebSocket) {
    this.#client = client
  }

  get bufferedBytes(): number {
    return this.#client.bufferedAmount
  }

  send(text: string, sent?: () => void): void {
    this.#client.send(text, sent)
  }

  ping(): void {
    this.#client.ping()
  }

  close(code: number, reason: string): void {
    this.#client.close(code, reason)
  }
}

function refuse(socket: Duplex, { status, body, retryAfterSeconds }: ApiError): void {
  const text = JSON.stringify(body)
  const headers = [
    `HTTP/1.1 ${status} Refused`,
    "Connection: close",
    "Content-Type: application/json; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(text)}`,
    ...(retryAfterSeconds === null ? [] : [`Retry-After: ${retryAfterSeconds}`]),
  ]
  // A client that does not close its half would keep the socket.
  socket.once("finish", () => socket.destroy())
  socket.end(`${headers.join("\r\n")}\r\n\r\n${text}`)
}
