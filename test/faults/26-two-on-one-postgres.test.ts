/** Fault 26: processes that start at once on one empty PostgreSQL. All of them work, and every migration ran once. */
import { describe, expect, test } from "vitest"
import { MIGRATIONS } from "../../src/store/postgres/schema.ts"
import { connect, ON_SHARED_SERVERS } from "../multi-process/site.ts"
import { Receiver } from "../support/receiver.ts"
import { Remote } from "./remote.ts"

const PROCESSES = 3
const ROUNDS = 3

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("three that start at once on an empty database share it: all of them send, and between them they deliver once", async () => {
    const receiver = await Receiver.start()
    const remotes = Array.from({ length: PROCESSES }, () => Remote.start())
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const there = await place()
        await Promise.all(remotes.map((remote) => remote.open(there)))
        const client = await connect(there.store)
        const { rows } = await client.query("SELECT number FROM posthorn_migrations ORDER BY number")
        expect(rows).toEqual(MIGRATIONS.map((_, i) => ({ number: i + 1 })))

        const [one] = remotes
        await one!.posthorn.applications.create({ uid: "acme", name: "Acme" })
        // They share one encryption key too: each can read the secrets that another wrote.
        await one!.posthorn.endpoints.create("acme", { url: receiver.url(`/${round}`) })
        const sent = await Promise.all(
          remotes.map(({ posthorn }) => posthorn.send("acme", { eventType: "a", payload: round })),
        )
        expect(sent.map(({ matched }) => matched)).toEqual(new Array(PROCESSES).fill(1))
        await receiver.arrived(`/${round}`, PROCESSES)
        await expect.poll(() => one!.posthorn.stats()).toMatchObject({ pending: 0, delivered: PROCESSES })
        expect(
          receiver
            .to(`/${round}`)
            .map(({ id }) => id)
            .sort(),
        ).toEqual(sent.map(({ id }) => id).sort())
        await Promise.all(remotes.map(({ posthorn }) => posthorn.close()))
      }
    } finally {
      await receiver.close()
    }
  })
})
