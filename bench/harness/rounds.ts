/** A/B runs: short rounds of the contenders alternate, so that disturbances of the machine reach all of them. */

export interface Round {
  readonly perSecond: number
  /** Processor time of this process with all threads, for each operation. */
  readonly cpuMsEach: number
}

/** Runs a round of this number of operations. */
export async function timed(count: number, run: () => Promise<unknown>): Promise<Round> {
  const before = process.cpuUsage()
  const startedAt = performance.now()
  await run()
  const tookMs = performance.now() - startedAt
  const { user, system } = process.cpuUsage(before)
  return { perSecond: count / (tookMs / 1000), cpuMsEach: (user + system) / 1000 / count }
}

export interface Turns {
  /** Warm-up rounds, in which code is compiled and connections are opened. */
  readonly warmups: number
  readonly rounds: number
  /** After this time only the minimum of rounds is run: the machine is slower than expected. */
  readonly mostMs: number
}

const LEAST_ROUNDS = 3

type Results<N extends string, T> = { readonly [name in N]: T[] }

/** The results of each contender by round. Which contender is first alternates. */
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
  /** The approximate time of a round. The warm-up rounds show how many operations that are. */
  readonly roundMs: number
}

const FIRST_COUNT = 200
const LEAST_COUNT = 200

/** Contenders with the number of operations that each can do in the time of a round. */
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

export function cpuMsEach(rounds: readonly Round[]): number[] {
  return rounds.map((round) => round.cpuMsEach)
}
