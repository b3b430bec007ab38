import fc from "fast-check"
import { expect, test } from "vitest"
import {
  type Action,
  cameDue,
  decide,
  dueAt,
  fetchEnded,
  fetchStarted,
  heldUntil,
  type LaneFacts,
  nextClaimAt,
  type Phase,
  REST_MS,
  recalled,
  type Supply,
  woken,
} from "./lane-machine.ts"

const NOW = 1_000_000
const WORKING: Phase = { kind: "working" }
const RESTING: Phase = { kind: "resting", since: NOW }
const DRY: Supply = { kind: "dry", until: null }
const MORE: Supply = { kind: "more", until: null }
const OVERTAKING: Supply = { kind: "overtaking", until: null }

const facts = (more: Partial<LaneFacts> = {}): LaneFacts => ({
  queued: 0,
  queuedPlaces: 0,
  mostPlaces: 8,
  sending: 0,
  unsettled: 0,
  ahead: 2,
  ordered: false,
  isOpen: true,
  mayRest: true,
  stopping: false,
  ...more,
})

test.each<[string, Phase, Supply, Partial<LaneFacts>, Action]>([
  ["fetches while the store has more and little is queued", WORKING, MORE, { queued: 1 }, { do: "fetch" }],
  ["has enough queued", WORKING, MORE, { queued: 2 }, { do: "wait", until: null }],
  ["fetches beside a full queue what overtakes it", WORKING, OVERTAKING, { queued: 5 }, { do: "fetch" }],
  [
    "leaves what overtakes in the store while its places are full",
    WORKING,
    OVERTAKING,
    { queued: 5, queuedPlaces: 8 },
    { do: "wait", until: null },
  ],
  [
    "fetches no next delivery of an ordered lane while one is in flight",
    WORKING,
    MORE,
    { ordered: true, sending: 1 },
    { do: "wait", until: null },
  ],
  [
    "fetches the next delivery of an ordered lane while the outcome of the last is written",
    WORKING,
    MORE,
    { ordered: true, unsettled: 1 },
    { do: "fetch" },
  ],
  ["rests with nothing to do and an open lane", WORKING, DRY, {}, { do: "rest" }],
  ["does not rest while an outcome is written", WORKING, DRY, { unsettled: 1 }, { do: "wait", until: null }],
  [
    "gives back a lane that is not open",
    WORKING,
    DRY,
    { isOpen: false },
    { do: "close", why: "nothing to do" },
  ],
  [
    "gives its lane back where too many rest",
    WORKING,
    DRY,
    { mayRest: false },
    { do: "close", why: "too many rest" },
  ],
  ["works again when something is queued", RESTING, DRY, { queued: 1 }, { do: "work" }],
  ["works again when it is woken", RESTING, MORE, {}, { do: "work" }],
  ["rests until its time is over", RESTING, DRY, {}, { do: "wait", until: NOW + REST_MS }],
  [
    "rests until a delivery comes due",
    RESTING,
    { kind: "dry", until: NOW + 5 },
    {},
    { do: "wait", until: NOW + 5 },
  ],
  [
    "closes when it has rested",
    { kind: "resting", since: NOW - REST_MS },
    DRY,
    {},
    { do: "close", why: "rested" },
  ],
  ["closes when the process stops", RESTING, MORE, { stopping: true }, { do: "close", why: "stopping" }],
  [
    "fetches nothing while it closes",
    { kind: "closing", why: "rested" },
    MORE,
    {},
    { do: "wait", until: null },
  ],
  [
    "waits for deliveries in flight before it ends",
    { kind: "leaving", why: "gives way" },
    MORE,
    { sending: 1 },
    { do: "wait", until: null },
  ],
  ["ends with nothing in hand", { kind: "leaving", why: "gives way" }, MORE, {}, { do: "end" }],
])("a lane %s", (_name, phase, supply, more, action) => {
  expect(decide(phase, supply, facts(more), NOW)).toEqual(action)
})

test("a wake during a fetch is not lost, whatever the fetch found", () => {
  for (const kind of ["dry", "more", "overtaking"] as const) {
    const found = { kind, until: null }
    expect(fetchEnded(woken(fetchStarted()), found).kind).not.toBe("dry")
    expect(fetchEnded(woken(fetchStarted(), true), found).kind).toBe("overtaking")
  }
})

test("a recalled fetch leaves only the wakes that came meanwhile", () => {
  const found = { kind: "more", until: NOW } as const
  expect(fetchEnded(recalled(fetchStarted()), found)).toEqual(DRY)
  expect(fetchEnded(woken(recalled(fetchStarted())), found)).toEqual(MORE)
  expect(fetchEnded(heldUntil(fetchStarted(), NOW + 9), found)).toEqual({ kind: "dry", until: NOW + 9 })
})

test("a retry that comes due is fetched beside deliveries in hand, once", () => {
  const supply = dueAt(dueAt(DRY, NOW + 7), NOW + 5)
  expect(cameDue(supply, NOW + 4)).toEqual({ kind: "dry", until: NOW + 5 })
  expect(cameDue(supply, NOW + 5)).toEqual({ kind: "overtaking", until: null })
})

type Event = "fetch" | "found nothing" | "found more" | "woken" | "overtaken" | "due" | "recalled" | "held"
const events = fc.array(
  fc.constantFrom<Event>(
    "fetch",
    "found nothing",
    "found more",
    "woken",
    "overtaken",
    "due",
    "recalled",
    "held",
  ),
  { maxLength: 30 },
)

function next(supply: Supply, event: Event): Supply {
  switch (event) {
    case "fetch":
      return supply.kind === "fetching" ? supply : fetchStarted()
    case "found nothing":
      return fetchEnded(supply, { kind: "dry", until: null })
    case "found more":
      return fetchEnded(supply, { kind: "more", until: null })
    case "woken":
      return woken(supply)
    case "overtaken":
      return woken(supply, true)
    case "due":
      return dueAt(supply, NOW)
    case "recalled":
      return recalled(supply)
    case "held":
      return heldUntil(supply, null)
    default:
      return event satisfies never
  }
}

test("after any events, a wake makes the lane look again at once, now or with its next claim", () => {
  fc.assert(
    fc.property(events, (list) => {
      let supply = woken(list.reduce(next, MORE))
      if (supply.kind === "fetching") supply = fetchEnded(supply, { kind: "dry", until: null })
      expect(nextClaimAt(supply, NOW)).toBe(NOW)
      expect(decide(WORKING, supply, facts(), NOW)).toEqual({ do: "fetch" })
    }),
  )
})

test("after any events, a lane with nothing in hand fetches, rests, waits for its fetch or is closed", () => {
  const anyFacts = fc.record({ isOpen: fc.boolean(), mayRest: fc.boolean(), stopping: fc.boolean() })
  fc.assert(
    fc.property(events, anyFacts, (list, more) => {
      const supply = list.reduce(next, MORE)
      const action = decide(WORKING, supply, facts(more), NOW)
      if (supply.kind === "fetching" && !more.stopping) expect(action).toEqual({ do: "wait", until: null })
      else expect(["fetch", "rest", "close"]).toContain(action.do)
    }),
  )
})

test("no action fetches during a fetch, and none starts a request once the lane leaves", () => {
  const anyFacts = fc.record({
    queued: fc.nat(9),
    queuedPlaces: fc.nat(9),
    sending: fc.nat(3),
    unsettled: fc.nat(3),
    ordered: fc.boolean(),
    isOpen: fc.boolean(),
  })
  fc.assert(
    fc.property(events, anyFacts, (list, more) => {
      const supply = list.reduce(next, MORE)
      for (const kind of ["closing", "leaving"] as const)
        expect(["wait", "end"]).toContain(decide({ kind, why: "rested" }, supply, facts(more), NOW).do)
      if (supply.kind === "fetching") expect(decide(WORKING, supply, facts(more), NOW).do).not.toBe("fetch")
    }),
  )
})
