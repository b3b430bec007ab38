/** Text for a terminal: nothing that came from outside may move the cursor, and columns keep their width. */

/** Control, format and unassigned characters and line breaks are shown as their code instead of acting. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (char) => {
    const code = char.codePointAt(0)!.toString(16)
    return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : `\\u{${code}}`
  })
}

/** Exactly this wide: filled up with spaces, or cut and marked as cut. */
export function column(text: string, width: number): string {
  const chars = [...text]
  if (chars.length <= width) return text + " ".repeat(width - chars.length)
  return width <= 0 ? "" : `${chars.slice(0, width - 1).join("")}…`
}

export function columnRight(text: string, width: number): string {
  return text.length >= width ? column(text, width) : text.padStart(width)
}
