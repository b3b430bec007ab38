/** Posthorn in a process of its own that does what it is told over its channel; see remote.ts. */
import { writeSync } from "node:fs"
import { openPosthorn, type Posthorn, type PosthornOptions } from "../../src/index.ts"
import { toPosthornError } from "../../src/store/sqlite/errors.ts"
import { Executor, type ExecutorOptions } from "../../src/store/sqlite/executor.ts"

interface Order {
  readonly number: number
  readonly name: string
  readonly args: readonly unknown[]
}

let posthorn: Posthorn | null = null
let met: Executor | null = null

interface Methods {
  readonly [name: string]: (...args: never[]) => unknown
}

const ORDERS: Methods = {
  async open(options: PosthornOptions) {
    posthorn = await openPosthorn({ egress: { allow: ["127.0.0.0/8"] }, ...options })
    posthorn.on("gateway:webhooks", (event) => process.send!({ event }))
  },
  /** Holds up the event loop; says so on standard output, which a blocked loop cannot delay. */
  block(ms: number) {
    const until = performance.now() + ms
    writeSync(1, "blocked\n")
    while (performance.now() < until) {}
  },
  /** Opens the file in this very thread at the given time: two processes that are told the same meet within a millisecond. */
  meet(options: ExecutorOptions, at: number) {
    while (Date.now() < at) {}
    try {
      met = new Executor(options)
    } catch (error) {
      throw toPosthornError(error)
    }
  },
  part() {
    met?.close()
    met = null
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
  let owner = posthorn as unknown as Methods
  for (const name of names) owner = owner[name] as unknown as Methods
  return (...args) => owner[method]!(...args)
}
