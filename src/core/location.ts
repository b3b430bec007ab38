/** Where a store or a schedule is, as it may be shown: parameters may hold a password too. */
export function withoutPassword(location: string): string {
  const url = URL.parse(location)
  // A password with a # or a / in it makes no URL, and is still a password.
  if (url === null) return location.replace(/^(\w+:\/\/).*$/s, "$1…")
  if (url.protocol === "sqlite:") return location
  url.password = ""
  url.search = ""
  url.hash = ""
  return url.href
}
