/** Numbers and times in the sentences of alerts. */

export const countText = (count: number, one: string, many = `${one}s`) =>
  `${count} ${count === 1 ? one : many}`

/** Rounded to a tenth of a percent. */
export const percentText = (share: number) => `${Math.round(share * 1000) / 10} %`

export const timeText = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z")

const GIB = 1024 ** 3

export const bytesText = (bytes: number) =>
  bytes >= GIB ? `${Math.round((bytes / GIB) * 10) / 10} GiB` : `${Math.round(bytes / 1024 ** 2)} MiB`

const UNITS = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
] as const

/** In the largest unit of which there are at least two. */
export function spanText(ms: number): string {
  const unit = UNITS.find(([length]) => ms >= 2 * length)
  return unit === undefined
    ? countText(Math.floor(ms / 1000), "second")
    : countText(Math.floor(ms / unit[0]), unit[1])
}
