/** The handler in Node. It is also the origin behind the proxies (nginx, Apache …). */
import { readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import { buffer } from "node:stream/consumers"

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const text = (status: number, body: string, headers = {}) =>
    response.writeHead(status, { "content-length": body.length, ...headers }).end(body)
  if (request.url === "/early") return void text(413, "too large")
  const { length } = await buffer(request)
  switch (request.url) {
    case "/chunked":
      response.write("one ")
      response.write("two ")
      return void response.end("three")
    case "/interim":
      response.writeEarlyHints({ link: "</style.css>; rel=preload" })
      return void text(200, String(length))
    case "/close":
      return void text(200, "bye", { connection: "close" })
    case "/empty":
      return void response.writeHead(204).end()
    case "/error":
      return void text(500, "broken")
    case "/redirect":
      return void text(302, "", { location: "/echo" })
    case "/large":
      return void text(200, "x".repeat(200_000))
    default:
      return void text(200, String(length))
  }
}

const { PORT, TLS_PORT, CERT, KEY, IDLE_MS } = process.env
const plain = [createServer(handle).listen(Number(PORT), "127.0.0.1")]
if (TLS_PORT !== undefined) {
  plain.push(
    createServer(handle)
      .listen(Number(PORT), "::1")
      .on("error", () => console.error("no IPv6")),
  )
  createTlsServer({ cert: readFileSync(CERT!), key: readFileSync(KEY!) }, handle).listen(
    Number(TLS_PORT),
    "127.0.0.1",
  )
}
if (IDLE_MS !== undefined) for (const server of plain) server.keepAliveTimeout = Number(IDLE_MS)
