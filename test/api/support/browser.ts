/** A browser with its cookies, on a page of the dashboard or of the portal. */
import type { SessionPage } from "../../../src/api/session-cookies.ts"
import type { ApiServer, CallOptions } from "./server.ts"

export class Browser {
  readonly server: ApiServer
  readonly page: SessionPage
  /** As the browser keeps them. */
  readonly cookies = new Map<string, string>()

  constructor(server: ApiServer, page: SessionPage = "dashboard") {
    this.server = server
    this.page = page
  }

  async call(method: string, path: string, options: CallOptions = {}) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ")
    const headers = { "posthorn-session": this.page, origin: this.server.url, cookie, ...options.headers }
    const answer = await this.server.call(method, path, { key: null, ...options, headers })
    for (const set of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set)!
      if (value === "") this.cookies.delete(name!)
      else this.cookies.set(name!, value!)
    }
    return answer
  }

  signIn(body: object, headers = {}) {
    return this.call("POST", "/auth/session", { body, headers })
  }
}
