/** Numbers and times in sentences for people. */

export const countText = (count: number, one: string, many = `${one}s`) =>
  `${count} ${count === 1 ? one : many}`

/** With a full stop, unless the text ends as a sentence already. */
export const sentenceText = (text: string) => (/[.?!]$/.test(text) ? text : `${text}.`)

/** Rounded down to a tenth of a percent, so that 94.99 % is not shown as 95 %. */
export const percentText = (share: number) => `${Math.floor(Number((share * 1000).toFixed(6))) / 10} %`

/** An operator's SQL may have stored any number. */
export function timeText(ms: number): string {
  const time = new Date(ms)
  return Number.isNaN(time.getTime()) ? `${ms}` : time.toISOString().replace(/\.\d+Z$/, "Z")
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"]

export function bytesText(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1)
  return `${Math.round((bytes / 1000 ** power) * 10) / 10} ${UNITS[power]}`
}

const SPANS = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
] as const

/** In the largest unit of which there are at least two. */
export function durationText(ms: number): string {
  const span = SPANS.find(([length]) => ms >= 2 * length)
  return span === undefined
    ? countText(Math.floor(ms / 1000), "second")
    : countText(Math.floor(ms / span[0]), span[1])
}
