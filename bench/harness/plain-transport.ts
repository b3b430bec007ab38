/** The HTTP transport without its guard, to measure the guard's cost. */
import { systemClock } from "../../src/core/clock.ts"
import { Guard, type HttpTarget } from "../../src/transport/egress/guard.ts"
import { parseEgress } from "../../src/transport/egress/settings.ts"
import { HttpTransport } from "../../src/transport/http.ts"

/** Allows everything. It caches parsed URLs as the guard does, so that the comparison measures only the checks. */
class OpenGuard extends Guard {
  readonly #targets = new Map<string, HttpTarget>()

  override target(url: string): HttpTarget {
    let target = this.#targets.get(url)
    if (target === undefined) {
      const { origin, host, pathname, search } = new URL(url)
      target = { origin, host, path: pathname + search }
      this.#targets.set(url, target)
    }
    return target
  }

  override async vet({ hostname }: URL): Promise<readonly string[]> {
    return [hostname]
  }

  override allows(): boolean {
    return true
  }
}

export function plainTransport(): HttpTransport {
  const clock = systemClock()
  return new HttpTransport(clock, new OpenGuard(parseEgress({}), clock))
}
