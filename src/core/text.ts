/** Text for a terminal: foreign text cannot move the cursor, and columns keep their width. */

/** Shows control, format and unassigned characters and line breaks as their code. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (char) => {
    const code = char.codePointAt(0)!.toString(16)
    return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : `\\u{${code}}`
  })
}

/** Exactly this wide: padded with spaces, or cut with an ellipsis. */
export function column(text: string, width: number): string {
  const chars = [...text]
  if (chars.length <= width) return text + " ".repeat(width - chars.length)
  return width <= 0 ? "" : `${chars.slice(0, width - 1).join("")}…`
}

export function columnRight(text: string, width: number): string {
  return text.length >= width ? column(text, width) : text.padStart(width)
}

/** In lines of at most this width, broken between words. A longer word is cut into pieces. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line: string[] = []
  for (const word of text.split(" ")) {
    const letters = [...word]
    if (line.length > 0 && line.length + 1 + letters.length <= width) {
      line.push(" ", ...letters)
      continue
    }
    if (line.length > 0) lines.push(line.join(""))
    while (letters.length > width) lines.push(letters.splice(0, width).join(""))
    line = letters
  }
  return [...lines, line.join("")]
}
