/** Comparison by turns: short rounds of each contender one after the other, so that all see the same machine. */

export interface Round {
  readonly perSecond: number
  /** Of this process, all its threads, for each. */
  readonly cpuMsEach: number
}

/** A round of so many, however they are done. */
export async function timed(count: number, run: () => Promise<unknown>): Promise<Round> {
  const before = process.cpuUsage()
  const startedAt = performance.now()
  await run()
  const tookMs = performance.now() - startedAt
  const { user, system } = process.cpuUsage(before)
  return { perSecond: count / (tookMs / 1000), cpuMsEach: (user + system) / 1000 / count }
}

export interface Turns {
  /** Rounds before those that count: code is compiled and connections are opened in them. */
  readonly warmups: number
  readonly rounds: number
  /** After this time there are no more rounds than it takes: the machine is slower than was thought. */
  readonly mostMs: number
}

const LEAST_ROUNDS = 3

type Results<N extends string, T> = { readonly [name in N]: T[] }

/** The results of each contender, round by round. Each is first in its turn. */
export async function byTurns<N extends string, T>(
  contenders: { readonly [name in N]: () => Promise<T> },
  { warmups, rounds, mostMs }: Turns,
): Promise<Results<N, T>> {
  const startedAt = performance.now()
  const names = Object.keys(contenders) as N[]
  const results = Object.fromEntries(names.map((name) => [name, [] as T[]])) as { [name in N]: T[] }
  for (let round = -warmups; round < rounds; round++) {
    if (round >= LEAST_ROUNDS && performance.now() - startedAt > mostMs) break
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(turn + Math.abs(round)) % names.length]!
      const result = await contenders[name]()
      if (round >= 0) results[name].push(result)
    }
  }
  return results
}

export interface RaceTurns extends Turns {
  /** About how long a round takes: how many that are is seen in the rounds that warm up. */
  readonly roundMs: number
}

const FIRST_COUNT = 200
const LEAST_COUNT = 200

/** Contenders that are given a number to do, as many as each does in the time of a round. */
export async function race<N extends string, R extends Round>(
  contenders: { readonly [name in N]: (count: number) => Promise<R> },
  turns: RaceTurns,
): Promise<Results<N, R>> {
  const sized = (run: (count: number) => Promise<R>) => {
    let count = FIRST_COUNT
    let warmups = turns.warmups
    return async () => {
      const round = await run(count)
      if (warmups-- > 0) count = Math.max(LEAST_COUNT, Math.round((round.perSecond * turns.roundMs) / 1000))
      return round
    }
  }
  const entries = Object.entries<(count: number) => Promise<R>>(contenders)
  const sizedContenders = Object.fromEntries(entries.map(([name, run]) => [name, sized(run)]))
  return byTurns(sizedContenders as { readonly [name in N]: () => Promise<R> }, turns)
}

export function perSecond(rounds: readonly Round[]): number[] {
  return rounds.map((round) => round.perSecond)
}
