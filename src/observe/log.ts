/** Structured log lines, in seed 004's words. */
import pino, { type Logger } from "pino"
import { invalid } from "../core/errors.ts"

export type { Logger } from "pino"

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** To standard error: a library does not write on its host's standard output. */
export function createLogger(level: LogLevel): Logger {
  return pino({ name: "posthorn", level }, pino.destination(2))
}

/** The option `logger`: a pino logger, or a level. */
export function parseLogger(given: unknown): Logger {
  if (LOG_LEVELS.includes(given as LogLevel)) return createLogger(given as LogLevel)
  if (typeof (given as Partial<Logger>)?.isLevelEnabled === "function") return given as Logger
  throw invalid("logger", `must be a pino logger or one of ${LOG_LEVELS.join(", ")}`)
}
