/** A harness for tests of virtual hours: a clock that the test moves, and a receiver without a network. */
import { TestClock } from "./clock.ts"
import { Harness, type HarnessOptions } from "./harness.ts"
import { VirtualReceiver } from "./virtual-receiver.ts"

export async function virtualTime(options: HarnessOptions = {}) {
  const clock = new TestClock()
  const receiver = new VirtualReceiver(clock)
  const harness = await Harness.start({ clock, transport: receiver, random: () => 0.5, ...options })
  /** Lets time pass in steps, and the engine finish its work after each. */
  const pass = async (ms: number, stepMs: number) => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      clock.advance(stepMs)
      await harness.calm()
    }
  }
  return { harness, receiver, clock, pass }
}

/** Messages numbered in their payloads, in batches. */
export async function sendMany(harness: Harness, count: number, eventType = "invoice.paid"): Promise<void> {
  const messages = Array.from({ length: count }, (_, n) => ({ eventType, payload: { n } }))
  for (let i = 0; i < count; i += 500) await harness.posthorn.sendBatch("acme", messages.slice(i, i + 500))
}
