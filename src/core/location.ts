/** Where a store or a schedule is, as it may be shown: parameters may hold a password too. */
export function withoutPassword(location: string): string {
  const url = URL.parse(location)
  if (url === null || url.protocol === "sqlite:") return location
  url.password = ""
  url.search = ""
  url.hash = ""
  return url.href
}
