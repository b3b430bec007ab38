/**
 * The HTTP API: accepted messages per second against a Fastify server that stores nothing, and from POST to receipt against the bare loop,
 * on SQLite and on PostgreSQL.
 */
import { type ApiServer, PosthornServer, startBareApi } from "../harness/api-servers.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { prepareMessage } from "../harness/prepared.ts"
import { RawClient } from "../harness/raw-client.ts"
import { type Round, race, timed } from "../harness/rounds.ts"
import { VoidRun } from "../harness/void.ts"

const ENDPOINTS = 100
/** A share of a core. */
const BUSIEST = 0.9

async function measure(bench: Bench): Promise<Values> {
  const [posthorn, bare] = await Promise.all([PosthornServer.start(), startBareApi()])
  try {
    await posthorn.createApplication("quiet", 0, "")
    await posthorn.createApplication("busy", ENDPOINTS, `${bench.receiver.origin}/ok`)
    const accepted = await measureAccepting(bench, posthorn, bare)
    const delivered = await measureDelivering(bench, posthorn, "api.e2e", false)
    await checkKept(posthorn, accepted.sent + delivered.sent)
    return { ...accepted.values, ...delivered.values }
  } finally {
    await Promise.all([posthorn.close(), bare.close()])
  }
}

async function measureOnPostgres(bench: Bench): Promise<Values> {
  const posthorn = await PosthornServer.start(await bench.servers.database("api"))
  try {
    await posthorn.createApplication("busy", ENDPOINTS, `${bench.receiver.origin}/ok`)
    const { sent, values } = await measureDelivering(bench, posthorn, "api.postgres", true)
    await checkKept(posthorn, sent)
    return values
  } finally {
    await posthorn.close()
  }
}

async function checkKept(posthorn: PosthornServer, sent: number): Promise<void> {
  const kept = await posthorn.stopAndCount()
  if (kept !== sent) throw new VoidRun(`${sent} messages were accepted, the store has ${kept}`)
}

interface Measured {
  readonly sent: number
  readonly values: Values
}

/** No endpoint subscribes to these messages: only accepting them is measured. */
async function measureAccepting(bench: Bench, posthorn: ApiServer, bare: ApiServer): Promise<Measured> {
  const clients = [await openClient(posthorn, "quiet", 1), await openClient(bare, "quiet", 1)] as const
  let sent = 0
  const accept = (count: number) => {
    sent += count
    return post(clients[0], count)
  }
  const rounds = await race({ posthorn: accept, bare: (count) => post(clients[1], count) }, bench.turns)
  for (const client of clients) client.close()
  return { sent, values: compared("api.accept", rounds.posthorn, "bare", rounds.bare) }
}

async function post(client: RawClient, count: number): Promise<Round> {
  const round = await timed(count, () => client.post(0, count))
  const busyShare = (round.cpuMsEach / 1000) * round.perSecond
  if (busyShare > BUSIEST) throw new VoidRun("the client was the limit: it used all of a core")
  return round
}

async function measureDelivering(
  bench: Bench,
  posthorn: ApiServer,
  name: string,
  hasIdempotencyKey: boolean,
): Promise<Measured> {
  const client = await openClient(posthorn, "busy", ENDPOINTS, hasIdempotencyKey)
  let sent = 0
  const deliver = async (count: number) => {
    sent += count
    const expected = await bench.receiver.expect(count)
    return timed(count, async () => {
      await client.post(expected.from, count)
      await expected.complete()
    })
  }
  const rounds = await race({ posthorn: deliver, bare: (count) => bench.bare.run(count) }, bench.turns)
  client.close()
  return { sent, values: compared(name, rounds.posthorn, "bare", rounds.bare) }
}

function openClient(
  { origin, key }: ApiServer,
  app: string,
  endpoints: number,
  hasIdempotencyKey = false,
): Promise<RawClient> {
  const path = `/api/v1/app/${app}/msg`
  return RawClient.open(prepareMessage({ origin, key, path, endpoints, hasIdempotencyKey }))
}

export const apiPart: Part = { names: ["api.accept.ratio", "api.e2e.ratio"], run: measure }

export const apiOnPostgres: Part = { names: ["api.postgres.ratio"], run: measureOnPostgres }
