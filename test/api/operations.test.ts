/** Every operation of Svix's open-source server, called by Svix's own client: it is there, under its name, and succeeds. */
import type { Svix } from "svix"
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../support/receiver.ts"
import { svixFor } from "./support/sdk.ts"
import { ApiServer } from "./support/server.ts"

interface World {
  readonly svix: Svix
  /** A portal's, which can log out. */
  readonly portal: Svix
  readonly url: string
  readonly messageId: string
  readonly attemptId: string
}

const APP = "acme"
const ENDPOINT = "hook"
const TYPE = "invoice.paid"

/** By the names that Svix's document has for them, in an order in which each finds what it needs. */
const OPERATIONS: { readonly [operation: string]: (world: World) => Promise<unknown> } = {
  "v1.health.get": ({ svix }) => svix.health.get(),
  "v1.application.create": ({ svix }) => svix.application.create({ name: "Globex", uid: "globex" }),
  "v1.application.list": ({ svix }) => svix.application.list(),
  "v1.application.get": ({ svix }) => svix.application.get(APP),
  "v1.application.update": ({ svix }) => svix.application.upsert("globex", { name: "Globex", uid: "globex" }),
  patch_application: ({ svix }) => svix.application.patch("globex", { name: "Globex Ltd." }),
  "v1.application.delete": ({ svix }) => svix.application.delete("globex"),
  "v1.event-type.create": ({ svix }) => svix.eventType.create({ name: "a.b", description: "A" }),
  "v1.event-type.list": ({ svix }) => svix.eventType.list(),
  "v1.event-type.get": ({ svix }) => svix.eventType.get("a.b"),
  "v1.event-type.update": ({ svix }) => svix.eventType.upsert("a.b", { description: "B" }),
  patch_event_type: ({ svix }) => svix.eventType.patch("a.b", { description: "C" }),
  "v1.event-type.delete": ({ svix }) => svix.eventType.delete("a.b"),
  "v1.endpoint.create": ({ svix, url }) => svix.endpoint.create(APP, { url, uid: "other" }),
  "v1.endpoint.list": ({ svix }) => svix.endpoint.list(APP),
  "v1.endpoint.get": ({ svix }) => svix.endpoint.get(APP, "other"),
  "v1.endpoint.update": ({ svix, url }) => svix.endpoint.upsert(APP, "other", { url, uid: "other" }),
  patch_endpoint: ({ svix }) => svix.endpoint.patch(APP, "other", { description: "The other one" }),
  "v1.endpoint.delete": ({ svix }) => svix.endpoint.delete(APP, "other"),
  "v1.endpoint.get-headers": ({ svix }) => svix.endpoint.getHeaders(APP, ENDPOINT),
  "v1.endpoint.update-headers": ({ svix }) =>
    svix.endpoint.setHeaders(APP, ENDPOINT, { headers: { "x-a": "1" } }),
  "v1.endpoint.patch-headers": ({ svix }) =>
    svix.endpoint.patchHeaders(APP, ENDPOINT, { headers: { "x-b": "2" } }),
  "v1.endpoint.get-secret": ({ svix }) => svix.endpoint.getSecret(APP, ENDPOINT),
  "v1.endpoint.rotate-secret": ({ svix }) => svix.endpoint.rotateSecret(APP, ENDPOINT),
  "v1.endpoint.get-stats": ({ svix }) => svix.endpoint.getStats(APP, ENDPOINT),
  "v1.endpoint.recover": ({ svix }) =>
    svix.endpoint.recover(APP, ENDPOINT, { since: new Date(Date.now() - 60_000) }),
  "v1.endpoint.send-example": ({ svix }) =>
    svix.endpoint.sendExample(APP, ENDPOINT, { eventType: "svix.ping" }),
  "v1.message.create": ({ svix }) => svix.message.create(APP, { eventType: TYPE, payload: {} }),
  "v1.message.list": ({ svix }) => svix.message.list(APP),
  "v1.message.get": ({ svix, messageId }) => svix.message.get(APP, messageId),
  "v1.message-attempt.list-by-endpoint": ({ svix }) => svix.messageAttempt.listByEndpoint(APP, ENDPOINT),
  "v1.message-attempt.list-by-msg": ({ svix, messageId }) => svix.messageAttempt.listByMsg(APP, messageId),
  "v1.message-attempt.list-attempted-messages": ({ svix }) =>
    svix.messageAttempt.listAttemptedMessages(APP, ENDPOINT),
  "v1.message-attempt.list-attempted-destinations": ({ svix, messageId }) =>
    svix.messageAttempt.listAttemptedDestinations(APP, messageId),
  "v1.message-attempt.get": ({ svix, messageId, attemptId }) =>
    svix.messageAttempt.get(APP, messageId, attemptId),
  "v1.message-attempt.resend": ({ svix, messageId }) => svix.messageAttempt.resend(APP, messageId, ENDPOINT),
  "v1.message-attempt.expunge-content": ({ svix, messageId, attemptId }) =>
    svix.messageAttempt.expungeContent(APP, messageId, attemptId),
  "v1.message.expunge-content": ({ svix, messageId }) => svix.message.expungeContent(APP, messageId),
  "v1.authentication.app-portal-access": ({ svix }) => svix.authentication.appPortalAccess(APP),
  logout_api_v1_auth_logout__post: ({ portal }) => portal.authentication.logout(),
}

/** Where Svix's document has an older kind of name than for all the others. */
const OUR_NAMES: { readonly [operation: string]: string } = {
  patch_application: "v1.application.patch",
  patch_event_type: "v1.event-type.patch",
  patch_endpoint: "v1.endpoint.patch",
  logout_api_v1_auth_logout__post: "v1.authentication.logout",
}

test("Svix's client succeeds with every operation of the open-source server", async () => {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  const answered: (readonly [string | null, number])[] = []
  const client = (key?: string) => svixFor(server, key, (...answer) => answered.push(answer))
  const svix = client()
  await svix.application.create({ name: "Acme", uid: APP })
  const url = receiver.url("/hook")
  await svix.endpoint.create(APP, { url, uid: ENDPOINT })
  const { id: messageId } = await svix.message.create(APP, { eventType: TYPE, payload: {} })
  const attempts = async () => (await svix.messageAttempt.listByMsg(APP, messageId)).data
  await expect.poll(attempts).toHaveLength(1)
  const attemptId = (await attempts())[0]!.id
  const portal = client((await svix.authentication.appPortalAccess(APP)).token)
  const world: World = { svix, portal, url, messageId, attemptId }
  for (const [operation, call] of Object.entries(OPERATIONS)) {
    answered.length = 0
    await call(world)
    expect(answered).toEqual([[OUR_NAMES[operation] ?? operation, expect.toSatisfy((one) => one < 300)]])
  }
})
