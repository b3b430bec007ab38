/** `posthorn worker`: a process that only delivers. */
import { openPosthorn, type Posthorn } from "../index.ts"
import { createLogger, LOG_LEVELS, type LogLevel } from "../observe/log.ts"
import { type Flags, UsageError, unknown } from "./options.ts"
import { printable } from "./text.ts"
import { asUsageError } from "./usage.ts"

export const options = {
  store: { type: "string" },
  schedule: { type: "string" },
  concurrency: { type: "string" },
  "max-in-flight": { type: "string" },
  "log-level": { type: "string" },
} as const

export const help = `posthorn worker --store URL [--schedule redis://HOST:PORT] [flags]

Delivers what waits in the store, and nothing else. On PostgreSQL start as many as you like, on any machine;
what one that is killed had in hand goes to the others. On SQLite one process at a time can deliver.
SIGTERM and SIGINT stop it after the requests under way, ten seconds at most; a second one stops it at once.

  --store            postgres://USER:PASSWORD@HOST:PORT/DATABASE or sqlite:FILE; else POSTHORN_STORE
  --schedule         redis://HOST:PORT as the delay queue of a store on PostgreSQL; else POSTHORN_SCHEDULE
  --concurrency      the most requests at once to an endpoint that does not say (32)
  --max-in-flight    the most requests at once in all (2048)
  --log-level        ${LOG_LEVELS.join(", ")} (warn)

  posthorn worker --store postgres://posthorn:secret@db.example.com/posthorn
  POSTHORN_STORE=postgres://… POSTHORN_SCHEDULE=redis://cache.example.com:6379 posthorn worker --log-level info

Where webhooks may go is set by POSTHORN_EGRESS_ALLOW and its like, the key of the endpoints' secrets by
POSTHORN_ENCRYPTION_KEY, as for every process on the store.`

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

export async function run(flags: Flags): Promise<number> {
  const store = setting(flags.store, "--store", "POSTHORN_STORE")
  const schedule = setting(flags.schedule, "--schedule", "POSTHORN_SCHEDULE")
  if (store === null)
    throw new UsageError(
      "--store is missing: give it a URL such as postgres://user@host/database, or set POSTHORN_STORE",
    )
  const logLevel = levelOf(flags["log-level"])
  const numbers = {
    concurrency: numberOf(flags.concurrency, "--concurrency"),
    maxInFlight: numberOf(flags["max-in-flight"], "--max-in-flight"),
  }
  const stopped = whenStopped()
  let posthorn: Posthorn
  try {
    posthorn = await openPosthorn({
      store: store.value,
      ...(schedule === null ? {} : { schedule: schedule.value }),
      ...(numbers.concurrency === null ? {} : { concurrency: numbers.concurrency }),
      ...(numbers.maxInFlight === null ? {} : { maxInFlight: numbers.maxInFlight }),
      logger: logLevel,
      // It is in the log already, with its stack.
      onFatal: () => process.exit(1),
    })
  } catch (error) {
    throw asUsageError(error, {
      store: store.name,
      schedule: schedule?.name ?? "--schedule",
      concurrency: "--concurrency",
      maxInFlight: "--max-in-flight",
    })
  }
  const told = {
    store: withoutSecrets(store.value),
    schedule: withoutSecrets(schedule?.value ?? store.value),
  }
  const log = createLogger(logLevel === "silent" ? "silent" : "info")
  log.info(told, `worker ${process.pid} delivers from ${told.store}, scheduled by ${told.schedule}`)
  const signal = await stopped
  log.info(`worker ${process.pid} got ${signal}: finishes the requests under way`)
  await posthorn.close()
  return 0
}

interface Setting {
  readonly value: string
  /** Where it came from, for a sentence about it. */
  readonly name: string
}

/** The flag wins. */
function setting(flag: unknown, name: string, variable: string): Setting | null {
  if (typeof flag === "string") return { value: flag, name }
  const value = process.env[variable]
  return value === undefined || value === "" ? null : { value, name: variable }
}

function numberOf(flag: unknown, name: string): number | null {
  if (flag === undefined) return null
  if (typeof flag === "string" && /^\d+$/.test(flag)) return Number(flag)
  throw new UsageError(`${name} must be a whole number, not "${printable(String(flag))}"`)
}

function levelOf(flag: unknown): LogLevel {
  if (flag === undefined) return "warn"
  if (LOG_LEVELS.includes(flag as LogLevel)) return flag as LogLevel
  throw unknown("log level", String(flag), LOG_LEVELS)
}

/** Resolves with the first signal; a second one ends the process as it would have without us. */
function whenStopped(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false
    for (const [signal, code] of Object.entries(SIGNALS)) {
      process.on(signal, () => {
        if (asked) process.exit(code)
        asked = true
        resolve(signal)
      })
    }
  })
}

/** A password, and parameters that may be one. */
function withoutSecrets(text: string): string {
  const url = URL.parse(text)
  if (url === null || url.protocol === "sqlite:") return text
  url.password = ""
  url.search = ""
  return url.href
}
