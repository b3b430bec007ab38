/** The figures: their limits, and the conditions under which they are measured. */

export interface Figure {
  readonly name: string
  /** Without a floor or a ceiling, the figure is only reported. */
  readonly atLeast?: number
  readonly atMost?: number
  /** For a figure without a limit. */
  readonly lessIsBetter?: boolean
  readonly condition: string
}

const DELIVER = "from send to settled, 1 kB, 1 and 100 endpoints (the smaller) ÷ bare undici loop"

/** A quick run has fewer rows. */
export function rowsIn(quick: boolean): number {
  return quick ? 30_000 : 1_000_000
}

export function figuresOf(quick: boolean): readonly Figure[] {
  const rows = quick ? "30 000" : "1 000 000"
  return [
    { name: "deliver.sqlite.ratio", atLeast: 0.4, condition: DELIVER },
    { name: "deliver.postgres.ratio", atLeast: 0.25, condition: `${DELIVER}; database on the same cores` },
    { name: "deliver.redis.ratio", atLeast: 0.25, condition: `${DELIVER}; and the schedule in Redis` },
    {
      name: "peers.bullmq.ratio",
      atLeast: 2,
      condition: "Posthorn on SQLite ÷ BullMQ on Redis, AOF everysec",
    },
    {
      name: "peers.pgboss.ratio",
      atLeast: 2,
      condition: "Posthorn on PostgreSQL ÷ pg-boss on the same server",
    },
    { name: "backlog.ratio", atLeast: 0.9, condition: `${rows} waiting and ${rows} finished rows ÷ none` },
    {
      name: "isolation.p99ratio",
      atMost: 1.2,
      condition: "99 endpoints beside 1 that hangs ÷ without, 1000/s, window by window",
    },
    {
      name: "latency.idle.p50ms",
      atMost: 2,
      condition: "send to receipt, 20/s, to an endpoint used in the last 10 s",
    },
    {
      name: "latency.idle.quietP50ms",
      lessIsBetter: true,
      condition: "send to receipt, 20/s, to an endpoint that was sent nothing before",
    },
    { name: "latency.half.p99ms", atMost: 50, condition: "send to receipt, half of the capacity" },
    { name: "start.firstDeliveryMs", atMost: 1000, condition: `open to first receipt, ${rows} overdue rows` },
    {
      name: "memory.rssMb",
      atMost: 200,
      condition: `the most of that process while it delivers for ${quick ? 1 : 10} s, Node without options`,
    },
    { name: "retry.settle.p99ms", atMost: 20, condition: "a 500 to its retry written, half of the capacity" },
    {
      name: "api.accept.ratio",
      atLeast: 0.6,
      condition: "POST …/msg that no endpoint wants, 64 at once ÷ Fastify that keeps nothing",
    },
    { name: "api.e2e.ratio", atLeast: 0.2, condition: "POST to receipt, 100 endpoints ÷ bare undici loop" },
    {
      name: "api.postgres.ratio",
      condition: "POST with an idempotency key to receipt, PostgreSQL, 100 endpoints ÷ bare undici loop",
    },
    { name: "workers.scaling", condition: "4 workers ÷ 1, PostgreSQL, 100 endpoints" },
    { name: "guard.ratio", atLeast: 0.95, condition: "through the egress guard ÷ past it, 100 endpoints" },
    {
      name: "protection.ratio",
      atLeast: 0.95,
      condition: "breaker, budget, adaptive delays and automatic disabling on ÷ off, SQLite, 100 endpoints",
    },
    {
      name: "protection.p99ratio",
      lessIsBetter: true,
      condition: "p99 of 100 endpoints beside 900 that fail ÷ without them, SQLite, 500 a second",
    },
    { name: "observe.metrics.ratio", atLeast: 0.95, condition: "metrics on ÷ off, SQLite, 100 endpoints" },
    {
      name: "observe.traces.ratio",
      atLeast: 0.95,
      condition: "traces, 1 % sampled ÷ off, SQLite, 100 endpoints",
    },
    {
      name: "relay.ratio",
      condition: "POST to a source to receipt behind one agent ÷ POST …/msg to receipt over HTTP",
    },
    {
      name: "relay.half.p99ms",
      lessIsBetter: true,
      condition: "the same, at half of its capacity, for a minute",
    },
    {
      name: "relay.idle.mb",
      lessIsBetter: true,
      condition: "the server's memory for 1000 agents that are connected and get nothing",
    },
    {
      name: "dashboard.ratio",
      condition:
        "POST to receipt, 100 endpoints, with the live overview open in Chromium on the same cores ÷ without",
    },
    { name: "thread.ratio", condition: "SQLite on its own thread ÷ on the main thread, 1 endpoint" },
  ]
}

/** Whether `only` is a figure's name, or whole words from its start. */
export function isWithin(name: string, only: string): boolean {
  return name === only || name.startsWith(`${only}.`)
}

/** As text. */
export function floorOf({ atLeast, atMost }: Figure): string {
  if (atLeast !== undefined) return `≥ ${atLeast}`
  return atMost === undefined ? "reported" : `≤ ${atMost}`
}

export function isLessBetter({ atMost, lessIsBetter = atMost !== undefined }: Figure): boolean {
  return lessIsBetter
}

/** Null: the figure has no limit. */
export function isMet({ atLeast, atMost }: Figure, value: number): boolean | null {
  if (atLeast !== undefined) return value >= atLeast
  return atMost === undefined ? null : value <= atMost
}
