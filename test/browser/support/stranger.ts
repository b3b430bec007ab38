/** A web server of another origin, whose pages attack the dashboard. */
import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"

export class Stranger {
  /** `http://127.0.0.1:PORT`: another origin than the site's, but the same host, for which browsers send its cookies. */
  readonly origin: string
  #html = ""

  private constructor(server: Server) {
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** Closed after the test. */
  static async start(): Promise<Stranger> {
    const server = createServer((_request, response) => {
      response.setHeader("content-type", "text/html").end(stranger.#html)
    })
    await once(server.listen(0, "127.0.0.1"), "listening")
    onTestFinished(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    const stranger = new Stranger(server)
    return stranger
  }

  /** Every address of this origin shows the document from now on. */
  show(html: string): string {
    this.#html = `<!doctype html><title>A stranger's page</title>${html}`
    return this.origin
  }
}
