/** Suggests a known name for a misspelt one. */

/** The known name with the fewest edits; null if none is close enough to be a typing error. */
export function nearest(typed: string, known: readonly string[]): string | null {
  let best: string | null = null
  let fewest = Math.max(2, Math.floor(typed.length / 3)) + 1
  for (const name of known) {
    const edits = distance(typed, name)
    if (edits >= fewest) continue
    best = name
    fewest = edits
  }
  return best
}

/** The Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      const replaced = row[j]! + (letter === b[j] ? 0 : 1)
      next.push(Math.min(replaced, row[j + 1]! + 1, next[j]! + 1))
    }
    row = next
  }
  return row.at(-1)!
}
