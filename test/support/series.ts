/** Reads the text format of Prometheus. */

interface Series {
  readonly name: string
  readonly labels: { readonly [label: string]: string }
  readonly value: number
}

export function seriesOf(text: string): Series[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line)!
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [
        label!,
        text!,
      ])
      return { name: name!, labels: Object.fromEntries(pairs), value: Number(value) }
    })
}

/** The sum of a metric's series that have these labels. Throws if there is none. */
export function total(
  series: readonly Series[],
  name: string,
  labels: { readonly [label: string]: string } = {},
): number {
  const wanted = Object.entries(labels)
  const found = series.filter(
    (one) => one.name === name && wanted.every(([label, value]) => one.labels[label] === value),
  )
  if (found.length === 0) throw new Error(`there is no ${name} with ${JSON.stringify(labels)}`)
  return found.reduce((sum, { value }) => sum + value, 0)
}
