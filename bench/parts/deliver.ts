/** Durable deliveries per second from `send` to settled on each store, against the bare loop. */
import type { PosthornOptions } from "../../src/index.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { Library } from "../harness/library.ts"
import { race } from "../harness/rounds.ts"

type Where = Pick<PosthornOptions, "store" | "schedule">

/** One endpoint is one lane; a hundred are a hundred lanes. The smaller ratio is the figure. */
async function measure(bench: Bench, name: string, where: Partial<Where>): Promise<Values> {
  const library = await Library.open(bench.receiver, where)
  try {
    const one = await library.traffic("one", 1)
    const hundred = await library.traffic("hundred", 100)
    const rounds = await race(
      {
        bare: (count) => bench.bare.run(count),
        one: (count) => one.run(count),
        hundred: (count) => hundred.run(count),
      },
      bench.turns,
    )
    const values = {
      ...compared(`${name}.one`, rounds.one, "bare", rounds.bare),
      ...compared(`${name}.hundred`, rounds.hundred, "bare", rounds.bare),
    }
    const smaller = Math.min(values[`${name}.one.ratio`]!, values[`${name}.hundred.ratio`]!)
    return { [`${name}.ratio`]: smaller, ...values }
  } finally {
    await library.close()
  }
}

export const deliverToSqlite: Part = {
  names: ["deliver.sqlite.ratio"],
  run: (bench) => measure(bench, "deliver.sqlite", {}),
}

export const deliverToServers: readonly Part[] = [
  {
    names: ["deliver.postgres.ratio"],
    run: async (bench) =>
      measure(bench, "deliver.postgres", { store: await bench.servers.database("deliver_postgres") }),
  },
  {
    names: ["deliver.redis.ratio"],
    run: async (bench) =>
      measure(bench, "deliver.redis", {
        store: await bench.servers.database("deliver_redis"),
        schedule: await bench.servers.redis(),
      }),
  },
]
