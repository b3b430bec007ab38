/** Reads a source text for everything in it that could open a connection, or start a program that does. */
import { isBuiltin } from "node:module"
import { parseAst } from "vite"

interface Node {
  readonly type: string
  readonly [key: string]: unknown
}

/** Builtin modules that reach other machines, start programs, or hand out any module by a name that is made at run time. */
const MODULES = new Set(
  ["net", "tls", "http", "https", "http2", "dgram", "dns", "quic", "inspector"].concat([
    "child_process",
    "cluster",
    "module",
    "vm",
    "repl",
    "wasi",
  ]),
)
const GLOBALS = new Set(
  ["fetch", "WebSocket", "EventSource", "WebSocketStream", "WebTransport", "navigator"].concat(
    // By these, whatever has a name can be had without writing it.
    ["globalThis", "global", "require", "eval", "Function"],
  ),
)
const OF_PROCESS = new Set(["getBuiltinModule", "binding", "_linkedBinding", "mainModule", "dlopen"])
/** Files of the egress module that every other file may import: they check URLs and open no connection. */
const EGRESS = new Set(["guard.ts", "settings.ts"])
/** They are given no address and reach none. */
const PACKAGES = new Set(["pino"])

export const UNKNOWN = "a module whose name is not written out"

export function waysOut(source: string): string[] {
  const found = new Set<string>()
  const declared = new Set<string>()
  const named: string[] = []
  walk(parseAst(source, { lang: "ts" }) as unknown as Node, (node) => {
    for (const way of [...imported(node), ...ofProcess(node)]) found.add(way)
    for (const name of declaredBy(node)) declared.add(name)
    named.push(...namedBy(node))
  })
  for (const name of named) if (GLOBALS.has(name) && !declared.has(name)) found.add(name)
  return [...found]
}

/** Every node that is there at run time. */
function walk(node: Node, visit: (node: Node) => void): void {
  const erased = node.importKind === "type" || node.exportKind === "type" || node.declare === true
  if (erased || /^TS(Interface|TypeAlias|Declare|Abstract|Type(Annotation|Parameter))/.test(node.type)) return
  visit(node)
  for (const child of Object.values(node).flat()) if (isNode(child)) walk(child, visit)
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value
}

function imported(node: Node): string[] {
  switch (node.type) {
    case "ImportDeclaration": {
      const specifiers = node.specifiers as Node[]
      const erased = specifiers.length > 0 && specifiers.every(({ importKind }) => importKind === "type")
      return erased ? [] : judged(node.source)
    }
    case "ExportNamedDeclaration":
      return node.source === null ? [] : judged(node.source)
    case "ExportAllDeclaration":
    case "ImportExpression":
      return judged(node.source)
    case "TSExternalModuleReference":
      return judged(node.expression)
    case "CallExpression":
      return isIdentifier(node.callee, "require") ? judged((node.arguments as Node[])[0]) : []
    default:
      return []
  }
}

function judged(source: unknown): string[] {
  const text = writtenOut(source)
  if (text === null) return [UNKNOWN]
  const inEgress = /(?:^|\/)egress\/([\w.-]+)$/.exec(text)?.[1]
  if (text.startsWith("."))
    return inEgress === undefined || EGRESS.has(inEgress) ? [] : [`egress/${inEgress}`]
  const name = text.replace(/^node:/, "")
  const [first = "", second] = name.split("/")
  const root = first.startsWith("@") ? `${first}/${second}` : first
  const harmless = isBuiltin(text) ? !MODULES.has(root) && !root.startsWith("_") : PACKAGES.has(root)
  return harmless ? [] : [root]
}

/** The value of a literal, or of a template without anything put in. */
function writtenOut(node: unknown): string | null {
  if (!isNode(node)) return null
  if (node.type === "Literal" && typeof node.value === "string") return node.value
  if (node.type !== "TemplateLiteral" || (node.expressions as Node[]).length > 0) return null
  return ((node.quasis as Node[])[0]?.value as { readonly cooked: string }).cooked
}

function ofProcess(node: Node): string[] {
  if (node.type !== "MemberExpression" || !isIdentifier(node.object, "process")) return []
  const name = node.computed === true ? writtenOut(node.property) : (node.property as Node).name
  if (name === null) return ["process[…]"]
  return OF_PROCESS.has(name as string) ? [name as string] : []
}

function isIdentifier(node: unknown, name: string): boolean {
  return isNode(node) && node.type === "Identifier" && node.name === name
}

function declaredBy(node: Node): string[] {
  if (/^Import(Default|Namespace)?Specifier$/.test(node.type)) return names(node.local)
  if (node.type === "VariableDeclarator") return names(node.id)
  if (!/Function(Declaration|Expression)$/.test(node.type)) return []
  return [node.id, ...(node.params as unknown[])].flatMap(names)
}

/** The names that a pattern binds. */
function names(pattern: unknown): string[] {
  if (!isNode(pattern)) return []
  if (pattern.type === "Identifier") return [pattern.name as string]
  const inner = [pattern.left, pattern.argument, pattern.value, pattern.elements, pattern.properties]
  return inner.flat().flatMap(names)
}

/** The names that this node uses as values: neither a property of something else, nor the key of its own. */
function namedBy(node: Node): string[] {
  const aside = node.computed === true ? null : node.type === "MemberExpression" ? node.property : node.key
  // The two halves of `{ fetch }` are one place, and a value.
  const used = Object.values(node)
    .flat()
    .filter((child) => isNode(child) && (child !== aside || node.shorthand))
  return used.flatMap((child) => (isIdentifier(child, (child as Node).name as string) ? names(child) : []))
}
