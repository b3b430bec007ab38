/** A real server with one of everything that commands can be pointed at, and a desk that is set to ask it. */
import { onTestFinished } from "vitest"
import { AlertStore } from "../../src/alerts/alert-store.ts"
import { ApiServer } from "../api/support/server.ts"
import { alertOf } from "../support/alert-samples.ts"
import { Receiver } from "../support/receiver.ts"
import { Desk } from "./posthorn.ts"

const SCHEMA = { type: "object", examples: [{ invoice: 17 }] }

export class World {
  readonly server: ApiServer
  readonly receiver: Receiver
  readonly desk: Desk

  private constructor(server: ApiServer, receiver: Receiver, desk: Desk) {
    this.server = server
    this.receiver = receiver
    this.desk = desk
  }

  /** Nothing but the server. */
  static async empty(): Promise<World> {
    const server = await ApiServer.start()
    const receiver = await Receiver.start()
    onTestFinished(() => receiver.close())
    const asking = { POSTHORN_SERVER: server.url, POSTHORN_API_KEY: server.key }
    return new World(server, receiver, new Desk(asking))
  }

  /** Application acme; endpoint main, which works; down, which fails once and is given up; paused, where things wait. */
  static async start(): Promise<World> {
    const world = await World.empty()
    const { server, receiver } = world
    receiver.always("/down", 500)
    const { applications, endpoints, eventTypes } = server.posthorn
    await applications.create({ uid: "acme", name: "Acme" })
    const once = { delays: [1], maxAttempts: 1 }
    const to = (uid: string, types: string[] | null, more = {}) =>
      endpoints.create("acme", { uid, url: receiver.url(`/${uid}`), eventTypes: types, ...more })
    await to("main", ["invoice.paid"])
    await to("down", ["fails"], { retry: once })
    await to("paused", ["waits"])
    await endpoints.pause("acme", "paused")
    await server.call("POST", "/operational-webhook/endpoint", {
      body: { uid: "ops", url: receiver.url("/ops"), eventTypes: ["endpoint.disabled"] },
    })
    await server.posthorn.alertChannels.put("ops", { kind: "webhook", url: receiver.url("/alerts") })
    await server.posthorn.sources.create("acme", { name: "github", verification: "github", secret: "s3cret" })
    await eventTypes.create({ name: "invoice.paid", description: "Paid", schemas: { 1: SCHEMA } })
    await world.send("invoice.paid", { eventId: "invoice-17" })
    await receiver.arrived("/main", 1)
    return world
  }

  async send(eventType: string, more = {}): Promise<string> {
    return (await this.server.posthorn.send("acme", { eventType, payload: { n: 1 }, ...more })).id
  }

  /** A delivery that has been given up. */
  async deadLetter(): Promise<string> {
    const { posthorn } = this.server
    const dead = new Promise<string>((resolve) => {
      const stop = posthorn.on("delivery.dead", ({ webhook_delivery_id: id }) => {
        stop()
        resolve(id)
      })
    })
    await this.send("fails")
    return dead
  }

  async firingAlert(): Promise<string> {
    const { store, clock, ids } = this.server.posthorn.context
    const alertStore = new AlertStore(store, clock)
    const read = await alertStore.readBoard()
    const alert = alertOf({ id: ids.make("alert", clock.now()), startedAt: clock.now() })
    await alertStore.saveBoard({ ...read.value, alerts: [...read.value.alerts, alert] }, read)
    return alert.id
  }

  /** A delivery that waits. */
  async waiting(): Promise<string> {
    const { data } = await this.server.posthorn.deliveries.list({ message: await this.send("waits") })
    return data[0]!.id
  }
}
