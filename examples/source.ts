/** A source behind an HTTP server of your own, with limits for requests of strangers. Run it: node examples/source.ts */
import { createHmac } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import { type AddressInfo, connect } from "node:net"
// An installed program writes: from "posthorn"
import { openPosthorn } from "../src/index.ts"

// The secret that you enter at GitHub.
const SECRET = "It's a Secret to Everybody"
const LARGEST_BODY = 1_048_576

const posthorn = await openPosthorn({ store: "sqlite::memory:" })
await posthorn.applications.create({ uid: "acme", name: "Acme" })
const source = await posthorn.sources.create("acme", {
  name: "github",
  verification: "github",
  secret: SECRET,
  eventType: { header: "x-github-event" },
})

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > LARGEST_BODY) throw new Error("the body is too large")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const server = createServer({ requestTimeout: 10_000 }, async (request, response) => {
  try {
    const [, token = "", path = "", query = ""] = /^\/in\/([^/?]*)(\/[^?]*)?(\?.*)?$/.exec(request.url!) ?? []
    const receipt = await posthorn.sources.receive(token, {
      method: request.method!,
      path,
      query,
      headers: request.headersDistinct,
      body: await bodyOf(request),
    })
    console.log(`${request.method} ${path}: ${receipt.result}`)
    response.writeHead(receipt.status, receipt.headers).end(receipt.body)
  } catch (error) {
    // The sender went away. An error that nobody catches would end the program.
    console.log(`not received: ${(error as Error).message}`)
    response.destroy()
  }
})
await once(server.listen(0, "127.0.0.1"), "listening")
const { port } = server.address() as AddressInfo

// GitHub, and a stranger who does not know the secret.
const body = '{"ref":"refs/heads/main"}'
for (const secret of [SECRET, "a guess"]) {
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`
  const headers = { "x-hub-signature-256": signature, "x-github-event": "push" }
  const url = `http://127.0.0.1:${port}${source.path}/deploy`
  const response = await fetch(url, { method: "POST", headers, body })
  console.log(`answered with ${response.status}`)
}
// A sender that goes away before its body has come.
const sender = connect(port, "127.0.0.1")
sender.end(`POST ${source.path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{`)
await once(sender.resume(), "close")

const { data } = await posthorn.messages.list("acme")
console.log(`messages: ${data.map(({ eventType }) => eventType).join(", ")}`)
await posthorn.close()
server.close()
