/** Strings that become scripts or markup where a page does not show them as text, in every place that a stranger can fill. */
import { createHmac } from "node:crypto"
import { connectAgent } from "../../../src/agent/agent.ts"
import type { Posthorn } from "../../../src/posthorn.ts"
import type { Receiver } from "../../support/receiver.ts"
import type { ExampleValues } from "./routes.ts"
import type { Site, SiteOptions } from "./site.ts"
import { untilSettled } from "./world.ts"

/** Each calls `hacked` where it runs. */
export const ATTACKS = [
  "<script>hacked('script')</script>",
  "<img src=x onerror=hacked('img')>",
  "\"><svg onload=hacked('svg')>",
  "' autofocus onfocus=hacked('focus') x='",
  "</textarea></title></style></script><script>hacked('end')</script>",
  "<iframe srcdoc=\"<script>parent.hacked('frame')</script>\"></iframe>",
  "<a href=\"javascript:hacked('link')\">click</a>",
  "javascript:hacked('scheme')",
  "data:text/html,<script>parent.hacked('data')</script>",
  "{{constructor.constructor('hacked()')()}}",
  "<style>*{display:none}</style><link rel=stylesheet href=//attacker.invalid/x.css>",
  "<meta http-equiv=refresh content=0;url=//attacker.invalid/>",
  "<form action=//attacker.invalid/><button>Sign in</button></form>",
  "&lt;script&gt;hacked('entity')&lt;/script&gt;",
  "%3Cscript%3Ehacked('percent')%3C/script%3E",
  "\u202Eright to left\u2066 \u0000\u0007\u001b[31m \uD83E\uDD80",
] as const
/** In every field of text at once. */
const TEXT = ATTACKS.join(" ")
/** Names that may not have such characters can still be those of an object's own members. */
const MEMBERS = ["__proto__", "constructor", "toString", "hasOwnProperty"] as const
const ONCE = { delays: [1], maxAttempts: 1, breaker: false } as const
const SECRET = "s3cret"

/** Has properties that a careless copy would take for its prototype, and numbers that JavaScript rounds. */
const PAYLOAD = JSON.stringify({ [TEXT]: TEXT, list: ATTACKS, deep: { constructor: { prototype: TEXT } } })
const HOSTILE_JSON = PAYLOAD.replace("{", '{"__proto__":{"isAdmin":true},"n":123456789012345678901234567890,')

const HTML = `<!doctype html><title>${TEXT}</title><body onload=hacked('body')>${TEXT}</body>`

/** Bodies of responses, by path; each fails, so that the page shows it. */
const RESPONSES: { readonly [uid: string]: readonly [type: string, body: string] } = {
  html: ["text/html", HTML],
  svg: ["image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg" onload="hacked('response')"/>`],
  json: ["application/json", HOSTILE_JSON],
  text: ["text/plain", TEXT],
}

export const HOSTILE: SiteOptions = { fill, after: joinHostileAgent }

async function fill(posthorn: Posthorn, receiver: Receiver): Promise<void> {
  const { applications, endpoints, eventTypes, policies, keys, alerts, monitor } = posthorn
  const metadata = Object.fromEntries(ATTACKS.map((attack) => [attack, attack]))
  await applications.create({ uid: "acme", name: TEXT.slice(0, 256), metadata })
  for (const [i, attack] of ATTACKS.entries()) {
    await applications.create({ name: attack, uid: `app.${i}` })
    await keys.create({ name: attack, scope: "read" })
  }
  for (const name of MEMBERS) {
    await eventTypes.create({ name, description: TEXT, schemas: { 1: { title: TEXT, examples: [TEXT] } } })
    await policies.put(name, ONCE)
  }
  for (const [uid, [type, body]] of Object.entries(RESPONSES)) {
    receiver.always(`/${uid}`, (_request, response) => {
      response.writeHead(500, { "content-type": type, "x-hostile": ATTACKS[1] }).end(body)
    })
    const headers = { "x-hostile": "<script>hacked('header')</script>" }
    const url = `${receiver.url(`/${uid}`)}?x="><script>hacked('url')</script>`
    receiver.always(new URL(url).pathname + new URL(url).search, (_request, response) => {
      response.writeHead(500, { "content-type": type }).end(body)
    })
    await endpoints.create("acme", { uid, url, description: TEXT, headers, metadata, retry: ONCE })
  }
  await endpoints.create("acme", { uid: "constructor", url: "relay://hub", description: TEXT })
  for (const [i, eventType] of [...MEMBERS, "javascript.alert.1"].entries()) {
    const more = { metadata, tags: ["constructor", "a/b#c\\d"], sessionId: "__proto__", eventId: `m${i}` }
    await posthorn.send("acme", { eventType, payload: JSON.parse(PAYLOAD), ...more })
  }
  const bytes = { html: HTML, json: HOSTILE_JSON, text: TEXT }
  for (const [type, body] of Object.entries(bytes))
    await posthorn.send("acme", {
      eventType: "raw",
      payload: Buffer.from(body),
      contentType: type === "json" ? "application/json" : `text/${type}`,
      eventId: `raw-${type}`,
    })
  await receive(posthorn)
  await untilSettled(posthorn)
  await alerts.rules.put("dead-letters-count", { count: 1 })
  await alerts.silences.create({
    rule: "retry-share",
    until: Date.now() + 3_600_000,
    reason: TEXT.slice(0, 256),
  })
  for (let i = 0; i < 2; i++) await monitor!.runOnce()
}

/** Requests of strangers, accepted and refused, with all that a request may carry. */
async function receive({ sources }: Posthorn): Promise<void> {
  const { token } = await sources.create("acme", {
    name: "constructor",
    description: TEXT,
    verification: "github",
    secret: SECRET,
  })
  for (const secret of [SECRET, "wrong"]) {
    const signature = createHmac("sha256", secret).update(HOSTILE_JSON).digest("hex")
    await sources.receive(token, {
      method: "POST",
      path: `/${encodeURIComponent(ATTACKS[1])}`,
      query: `?${encodeURIComponent(ATTACKS[2])}`,
      headers: {
        "content-type": "application/json",
        "user-agent": ATTACKS[0],
        "x-hostile": ATTACKS[1],
        "x-hub-signature-256": `sha256=${signature}`,
      },
      body: HOSTILE_JSON,
      remoteAddress: ATTACKS[1],
    })
  }
}

/** An agent belongs to a customer, who says why it refused an event. */
async function joinHostileAgent(site: Site): Promise<void> {
  const { token: key } = await site.call("POST", "/key", {
    name: TEXT.slice(0, 256),
    scope: "agent",
    appId: "acme",
  })
  const agent = connectAgent({
    server: site.url,
    key,
    name: "hub",
    logger: "silent",
    handle: () => ({ result: "permanent" as const, status: 400, error: TEXT, body: HTML }),
  })
  site.whenClosed(() => agent.close())
  await site.call("POST", "/app/acme/endpoint/html/recover", { since: new Date(Date.now() - 60_000) })
}

/** Every row that the API lists. */
export const HOSTILE_EXAMPLES: ExampleValues = {
  "/endpoints/:app/:id": () => [...Object.keys(RESPONSES), "constructor"].map((id) => ({ app: "acme", id })),
  "/messages/:app/:id": async (site) =>
    (await rows(site, "/app/acme/msg")).map((id) => ({ app: "acme", id })),
  "/deliveries/:id": async (site) => (await rows(site, "/delivery")).map((id) => ({ id })),
  "/dead-letters/tasks/:id": async (site) => (await rows(site, "/task")).map((id) => ({ id })),
  "/alerts/:id": async (site) => (await rows(site, "/alert")).map((id) => ({ id })),
  "/sources/:app/:id": () => [{ app: "acme", id: "constructor" }],
  "/agents/:app/:name": () => [{ app: "acme", name: "hub" }],
  "/policies/:name": () => MEMBERS.map((name) => ({ name })),
  "/applications/:id": async (site) => (await rows(site, "/app")).map((id) => ({ id })),
  "/event-types/:name": () => MEMBERS.map((name) => ({ name })),
  "/portal/endpoints/:id": () => Object.keys(RESPONSES).map((id) => ({ id })),
  "/portal/messages/:id": async (site) => (await rows(site, "/app/acme/msg")).map((id) => ({ id })),
  "/portal/event-types/:name": () => MEMBERS.map((name) => ({ name })),
}

async function rows(site: Site, path: string): Promise<string[]> {
  const { data } = await site.call("GET", `${path}?limit=12`)
  return data.map(({ id }: { readonly id: string }) => id)
}
