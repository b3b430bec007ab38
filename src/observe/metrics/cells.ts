/**
 * Counters whose series exist from the start, at 0. The hot path holds a cell of each series and adds to a number: the client joins label
 * values to a string in every call, which takes 200 ns against 3.
 */
import { Counter, type Registry } from "@prometheus-io/client"

export interface Cell {
  value: number
}

type LabelsOf<L extends string> = { readonly [label in L]: string }

/** Registers the counter with every combination of the label values. The result finds the cell of one of them. */
export function countedBy<L extends string>(
  registry: Registry,
  name: string,
  help: string,
  values: { readonly [label in L]: readonly string[] },
): (labels: LabelsOf<L>) => Cell {
  const labelNames = Object.keys(values) as L[]
  const cells = combinations(labelNames, values).map((labels) => ({ labels, value: 0 }))
  new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset()
      for (const { labels, value } of cells) this.inc(labels as never, value)
    },
  })
  return (wanted) => {
    const cell = cells.find(({ labels }) => labelNames.every((label) => labels[label] === wanted[label]))
    if (cell === undefined) throw new Error(`${name} has no series ${JSON.stringify(wanted)}`)
    return cell
  }
}

/** One cell for each value of a label, by value. */
export function cellsBy<V extends string>(
  values: readonly V[],
  cellOf: (value: V) => Cell,
): { readonly [value in V]: Cell } {
  return Object.fromEntries(values.map((value) => [value, cellOf(value)])) as { [value in V]: Cell }
}

function combinations<L extends string>(
  labelNames: readonly L[],
  values: { readonly [label in L]: readonly string[] },
): LabelsOf<L>[] {
  return labelNames.reduce<LabelsOf<L>[]>(
    (all, label) => all.flatMap((labels) => values[label].map((value) => ({ ...labels, [label]: value }))),
    [{} as LabelsOf<L>],
  )
}
