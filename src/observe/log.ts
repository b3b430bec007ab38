/** Structured log lines, in seed 004's words. */
import pino, { type Logger } from "pino"

export type { Logger } from "pino"

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** To standard error: a library does not write on its host's standard output. */
export function createLogger(level: LogLevel): Logger {
  return pino({ name: "posthorn", level }, pino.destination(2))
}
