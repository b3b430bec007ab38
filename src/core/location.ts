/** The location of a store or a schedule without its password. Query parameters are removed: they may have a password too. */
export function withoutPassword(location: string): string {
  const url = URL.parse(location)
  // A password with a # or / in it makes the URL invalid, and must not be shown either.
  if (url === null) return location.replace(/^(\w+:\/\/).*$/s, "$1…")
  if (url.protocol === "sqlite:") return location
  url.password = ""
  url.search = ""
  url.hash = ""
  return url.href
}
