/** A fetch that holds every answer to the OpenAPI document, made once for each list of routes. */
import type { Routes } from "../../../src/api/context.ts"
import { RequestLog } from "../../../src/api/logging.ts"
import { describeApi } from "../../../src/api/openapi.ts"
import { ROUTES } from "../../../src/api/routes/all.ts"
import { SessionCookies } from "../../../src/api/session-cookies.ts"
import { openPosthorn, type Posthorn } from "../../../src/posthorn.ts"
import { Contract } from "./contract.ts"

const contracts = new WeakMap<readonly Routes[], Promise<Contract>>()

/** Routes want a Posthorn to be made with; which one does not matter. */
export function contractOf(posthorn: Posthorn, routes: readonly Routes[] = ROUTES): Promise<Contract> {
  const make = async () => {
    const document = await describeApi(routes, {
      posthorn,
      publicUrl: null,
      tenant: () => posthorn,
      requestLog: new RequestLog(posthorn.context.instruments),
      isStillValid: async () => true,
      identify: () => {
        throw new Error("nobody calls these routes")
      },
      cookies: new SessionCookies(null),
      settings: [],
      changes: { settled: async () => {} },
    })
    return new Contract(JSON.parse(JSON.stringify(document)))
  }
  const contract = contracts.get(routes) ?? make()
  contracts.set(routes, contract)
  return contract
}

/** For a server in another process. */
export async function apiContract(): Promise<Contract> {
  const posthorn = await openPosthorn({ store: "sqlite::memory:", deliver: false, logger: "silent" })
  const contract = await contractOf(posthorn)
  await posthorn.close()
  return contract
}

type Answered = (operation: string | null, status: number) => void

export function fetchChecked(
  contract: Contract | Promise<Contract>,
  onAnswer: Answered = () => {},
): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
  return async (input, init) => {
    const response = await fetch(input, init)
    const { status, headers, url } = response
    const type = headers.get("content-type")
    const isStream =
      response.body !== null && status === 200 && type?.startsWith("text/event-stream") === true
    const text = isStream ? await beginningOf(response) : await response.clone().text()
    onAnswer(
      (await contract).check(init?.method ?? "GET", new URL(url).pathname, { status, type, text }),
      status,
    )
    return isStream ? new Response(text, { status, headers }) : response
  }
}

/** Of a response that never ends. */
async function beginningOf({ body }: Response): Promise<string> {
  const reader = body!.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}
