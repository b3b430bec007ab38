/** Reads Retry-After: seconds or an HTTP date. Junk, negatives and dates in the past mean nothing. */

export function retryAfterMs(header: string | null, nowMs: number, capSeconds: number): number {
  if (header === null || capSeconds === 0) return 0
  const text = header.trim()
  const seconds = /^\d{1,15}$/.test(text) ? Number(text) : (httpDate(text) - nowMs) / 1000
  if (!(seconds > 0)) return 0
  return Math.round(Math.min(seconds, capSeconds) * 1000)
}

/** Only the form that RFC 9110 tells senders to use; Date.parse alone would take "5" or "soon 2030". */
function httpDate(text: string): number {
  return /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)
    ? Date.parse(text)
    : Number.NaN
}
