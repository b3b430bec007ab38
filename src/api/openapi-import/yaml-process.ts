/** The process that parses YAML: text in, JSON or a problem out. */
import { text } from "node:stream/consumers"
import { CST, Lexer, parse } from "yaml"

export type FromYamlProcess = { readonly json: string } | { readonly problem: string }

/** The parser recurses: at about two thousand levels a stack overflow ends the process. */
const DEEPEST_FLOW = 128
const WIDEST_INDENT = 512

process.stdout.write(JSON.stringify(read(await text(process.stdin))))

function read(yaml: string): FromYamlProcess {
  if (isTooDeep(yaml)) return { problem: "it nests too deep" }
  try {
    // The check for duplicate keys takes quadratic time.
    const value: unknown = parse(yaml, { stringKeys: true, uniqueKeys: false, logLevel: "error" })
    return { json: JSON.stringify(value) ?? "null" }
  } catch (error) {
    return { problem: (error as Error).message.split("\n", 1)[0]! }
  }
}

/** Counts open brackets, and the columns at which lines and items begin. */
function isTooDeep(text: string): boolean {
  const open: string[] = []
  let column = 0
  let type: CST.TokenType | null = null
  for (const token of new Lexer().lex(text)) {
    // The token after a scalar's mark is its text.
    type = type === "scalar" ? null : CST.tokenType(token)
    if (type === "flow-seq-start") open.push("]")
    else if (type === "flow-map-start") open.push("}")
    else if (token === open.at(-1)) open.pop()
    const isIndent = type === "space" && column === 0
    const isItem = type === "seq-item-ind" || type === "explicit-key-ind"
    column = token.endsWith("\n") ? 0 : column + token.length
    if (open.length > DEEPEST_FLOW) return true
    if ((isIndent || isItem) && open.length === 0 && column > WIDEST_INDENT) return true
  }
  return false
}
