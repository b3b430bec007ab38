/** `kill -9` between a request and its answer: a repeat with the same idempotency key gets one answer, and one thing is there. */
import { expect, test } from "vitest"
import { temporaryFolder } from "../support/harness.ts"
import { IS_LONG } from "../support/length.ts"
import type { Program } from "../support/process.ts"
import { apiContract, fetchChecked } from "./support/checked.ts"
import { addressOf, serve } from "./support/serving.ts"

const KEY = "a-key-from-the-operators-vault"
/** After so many answers: the others are somewhere on their way. */
const KILLS = IS_LONG ? [0, 1, 2, 4, 6, 8, 12, 16, 20, 24, 28] : [0, 1, 8, 24]
const ENDPOINT = "https://93.184.216.34"
const fetched = fetchChecked(await apiContract())

interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for
  readonly body: any
}

async function call(
  address: string,
  method: string,
  path: string,
  body?: object,
  key?: string,
): Promise<Answer> {
  const response = await fetched(`${address}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${KEY}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: await response.json() }
}

/** Several, so that the kill finds them at different places. */
const named = (round: string) => Array.from({ length: 8 }, (_, n) => `${round}.${n}`)

/** One of everything that a repeat must not make twice, under each name. Null for what was never answered. */
function makeAll(
  address: string,
  round: string,
  onAnswer: () => void = () => {},
): Promise<(Answer | null)[]> {
  const requests = named(round).flatMap((name): (readonly [string, string, object])[] => [
    [name, "/app", { name }],
    [name, "/app/acme/endpoint", { url: `${ENDPOINT}/${name}` }],
    [name, "/app/acme/msg", { eventType: name, payload: { name } }],
    [name, "/app/acme/endpoint/hook/send-example", { eventType: "svix.ping" }],
  ])
  const answer = async (key: string, path: string, body: object) => {
    try {
      const answered = await call(address, "POST", path, body, key)
      onAnswer()
      return answered
    } catch (error) {
      if (error instanceof TypeError) return null
      throw error
    }
  }
  return Promise.all(requests.map((request) => answer(...request)))
}

/** Everything in the store, by the field that tells the rounds apart. */
async function everything(address: string) {
  const list = async (path: string, field: string) => {
    const found: string[] = []
    for (let iterator = "", done = false; !done; ) {
      const { body } = await call(address, "GET", `${path}?limit=250${iterator}`)
      for (const one of body.data) found.push(one[field])
      iterator = `&iterator=${body.iterator}`
      done = body.done
    }
    return found.sort()
  }
  return {
    applications: await list("/app", "name"),
    endpoints: await list("/app/acme/endpoint", "url"),
    sent: await list("/app/acme/msg", "eventType"),
  }
}

/** The starts, and five seconds in which the dead might still answer. */
const PATIENTLY = { timeout: 90_000 }

test(
  "whenever the server dies, a repeat gets the answer of what was made, and nothing is made twice",
  PATIENTLY,
  async () => {
    const folder = temporaryFolder()
    const begin = () => serve(["--no-deliver"], { POSTHORN_API_KEY: KEY }, folder)
    const before = new Map<string, (Answer | null)[]>()
    let program: Program = begin()
    await call(await addressOf(program), "POST", "/app", { name: "Acme", uid: "acme" })
    await call(await addressOf(program), "POST", "/app/acme/endpoint", {
      url: `${ENDPOINT}/hook`,
      uid: "hook",
    })
    for (const kill of KILLS) {
      const address = await addressOf(program)
      const { promise: enough, resolve } = Promise.withResolvers<void>()
      let count = 0
      const answers = makeAll(address, `round.${kill}`, () => ++count === kill && resolve())
      // Or somewhere before the first.
      if (kill === 0) setTimeout(resolve, 10)
      await enough
      await program.kill()
      before.set(`round.${kill}`, await answers)
      program = begin()
    }
    const rounds = [...before.keys()]
    expect([...before.values()].flat()).toContain(null)

    const address = await addressOf(program)
    const repeat = () => Promise.all(rounds.map((round) => makeAll(address, round)))
    const answered = await repeat()
    for (const [n, answers] of answered.entries()) {
      expect(answers.map((one) => one?.status)).toEqual(named("").flatMap(() => [201, 201, 202, 200]))
      for (const [i, earlier] of before.get(rounds[n]!)!.entries())
        if (earlier !== null) expect(answers[i]).toEqual(earlier)
    }
    expect(await repeat()).toEqual(answered)
    const made = rounds.flatMap(named)
    expect(await everything(address)).toEqual({
      applications: ["Acme", ...made].sort(),
      endpoints: [`${ENDPOINT}/hook`, ...made.map((one) => `${ENDPOINT}/${one}`)].sort(),
      sent: [...made, ...made.map(() => "svix.ping")].sort(),
    })
  },
)
