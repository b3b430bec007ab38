/** `posthorn workers`: processes that deliver. */
import { action, type Command, TABLE_FLAGS } from "../command.ts"
import { type Column, shortTime, time } from "../table.ts"

interface Worker {
  readonly id: string
  readonly name: string
  readonly alive: boolean
  readonly aliveUntil: string | null
  readonly lanes: number
  readonly inHand: number
}

const COLUMNS: readonly Column<Worker>[] = [
  { title: "ID", value: ({ id }) => id },
  { title: "NAME", value: ({ name }) => name, cut: true },
  { title: "ALIVE", value: ({ alive }) => alive },
  { title: "LEASE UNTIL", value: ({ aliveUntil }) => time(aliveUntil), short: shortTime },
  { title: "LANES", value: ({ lanes }) => lanes, right: true },
  { title: "IN HAND", value: ({ inHand }) => inHand, right: true },
]

export const command: Command = action({
  summary: "the processes that deliver: who is alive, how many lanes and deliveries each holds",
  flags: TABLE_FLAGS,
  examples: ["posthorn workers"],
  async run({ api, out }) {
    const list = await api.get<{ readonly data: readonly Worker[] }>("/worker")
    out.table(list, list.data, COLUMNS, "Nobody delivers: start posthorn serve or posthorn worker.")
  },
})
