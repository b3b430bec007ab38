/** Posthorn in a process of its own that does what it is told over its channel; see remote.ts. */
import { writeSync } from "node:fs"
import { openPosthorn, type Posthorn, type PosthornOptions } from "../../src/index.ts"

interface Order {
  readonly number: number
  readonly name: string
  readonly args: readonly unknown[]
}

let posthorn: Posthorn | null = null

const ORDERS: { readonly [name: string]: (...args: never[]) => unknown } = {
  async open(options: PosthornOptions) {
    posthorn = await openPosthorn(options)
    posthorn.on("gateway:webhooks", (event) => process.send!({ event }))
  },
  /** Holds up the event loop; says so on standard output, which a blocked loop cannot delay. */
  block(ms: number) {
    const until = performance.now() + ms
    writeSync(1, "blocked\n")
    while (performance.now() < until) {}
  },
}

process.on("message", async ({ number, name, args }: Order) => {
  try {
    const order = Object.hasOwn(ORDERS, name) ? ORDERS[name]! : methodOf(name)
    process.send!({ number, value: await order(...(args as never[])) })
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    process.send!({ number, error: { code, message } })
  }
})

/** "endpoints.create" is `posthorn.endpoints.create`. */
function methodOf(path: string): (...args: never[]) => unknown {
  const names = path.split(".")
  const method = names.pop()!
  const owner = names.reduce((object, name) => object[name], posthorn as never)
  return (...args) => (owner[method] as (...args: never[]) => unknown).apply(owner, args)
}
