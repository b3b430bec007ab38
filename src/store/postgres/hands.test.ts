import { expect, test } from "vitest"
import { Hands } from "./hands.ts"

const route = (version: number) => ({
  id: "ep",
  url: "https://example.com",
  ordered: false,
  eventTypes: null,
  channels: null,
  version,
})

function open(): Hands {
  const hands = new Hands()
  hands.open("ep", { token: 7, owner: 3, version: 1, most: 10, used: 0, free: 1 })
  return hands
}

test("a lane whose worker knows another version of the endpoint is offered nothing", () => {
  const hands = open()
  expect(hands.offer(route(1), 0)).toEqual({ token: 7, owner: 3, starts: true })
  expect(hands.offer(route(2), 0)).toBeNull()
  expect(hands.offer(route(1), 0)).toBeNull()
})

test("what was taken is in hand until it is let go of, and of no other claim", () => {
  const hands = open()
  hands.take("ep", hands.offer(route(1), 0)!, 5)
  expect(hands.has("ep", 7, 5)).toBe(true)
  expect(hands.has("ep", 8, 5)).toBe(false)
  expect(hands.inHand("ep", 7)).toEqual([5])
  hands.letGo("ep", 8, 5)
  expect(hands.inHand("ep", 7)).toEqual([5])
  hands.letGo("ep", 7, 5)
  expect(hands.inHand("ep", 7)).toEqual([])
})

test("an offer is open until it is taken or withdrawn, and whoever waits for that is told then", async () => {
  const hands = open()
  const [one, two] = [hands.offer(route(1), 0)!, hands.offer(route(1), 0)!]
  let isDecided = false
  const decided = hands.decided(["ep", "another"]).then(() => {
    isDecided = true
  })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  hands.take("ep", one, 5)
  await turn()
  await turn()
  expect(isDecided).toBe(false)
  hands.withdraw("ep", two)
  expect(isDecided).toBe(false)
  await decided
  expect(hands.offer(route(1), 0)).toBeNull()
  await hands.decided(["ep"])
})

test("an outcome that cannot be written keeps its place, however often it is tried", () => {
  const hands = new Hands()
  hands.open("ep", { token: 7, owner: 3, version: 1, most: 2, used: 1, free: 1 })
  for (let i = 0; i < 5; i++) {
    hands.startSettling("ep", 7)
    hands.keep("ep", 7)
    hands.endSettling("ep")
  }
  expect(hands.settling("ep")).toBe(0)
  expect(hands.offer(route(1), 0)).toBeNull()
})

test("another worker of the process has nothing of what the one before had", () => {
  const hands = open()
  hands.take("ep", hands.offer(route(1), 0)!, 5)
  hands.open("another", { token: 8, owner: 4, version: 1, most: 10, used: 0, free: 1 })
  expect(hands.has("ep", 7, 5)).toBe(false)
  expect(hands.offer(route(1), 0)).toBeNull()
})
