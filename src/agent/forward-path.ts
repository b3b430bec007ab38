/** Joins the path of a webhook to the URL that the agent forwards to. The result stays below that URL. */

/** Raw bytes of a request line come as these characters, and go out as the same bytes. */
const NOT_IN_A_TARGET = /[^\x21-\xff]|#/gu

/** Null: the path has more `..` than folders, so a program that resolves them would leave the base path. */
export function targetPath(basePath: string, path: string, query: string): string | null {
  if (leaves(path)) return null
  // Two leading slashes would name a host to a program that parses the target as a URL.
  const below = path.replace(/^[/\\]+/, "")
  const base = basePath.replace(/\/+$/, "")
  const joined = path === "" ? basePath : `${base}/${below}`
  const search = query === "" || query.startsWith("?") ? query : `?${query}`
  return (joined + search).replace(NOT_IN_A_TARGET, percentEncoded)
}

/** Programs differ in what they take for a slash and a dot: every reading counts. */
function leaves(path: string): boolean {
  let depth = 0
  for (const given of path.replace(/%2e/gi, ".").split(/[/\\]|%2f|%5c/i)) {
    // Java's servers cut parameters off a segment before they resolve it: `..;a` is `..` there.
    const segment = given.replace(/;.*/s, "")
    if (segment === "..") depth--
    else if (segment !== "" && segment !== ".") depth++
    if (depth < 0) return true
  }
  return false
}

function percentEncoded(char: string): string {
  return Buffer.from(char).toString("hex").replace(/../g, "%$&").toUpperCase()
}
