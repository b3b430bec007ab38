/** Parses Retry-After: seconds or an HTTP date. Invalid and negative values and past dates are ignored. */
import { httpDateMs } from "./http-date.ts"

export function retryAfterMs(header: string | null, wallMs: number, capSeconds: number): number {
  if (header === null || capSeconds === 0) return 0
  const text = header.trim()
  const seconds = /^\d{1,15}$/.test(text) ? Number(text) : (httpDateMs(text, wallMs) - wallMs) / 1000
  if (!(seconds > 0)) return 0
  return Math.round(Math.min(seconds, capSeconds) * 1000)
}
