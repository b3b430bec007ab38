/** The transport of an endpoint, by the scheme of its URL: `http` for `http:` and `https:`, and for text that is no URL. */
export function transportOf(url: string): string {
  const scheme = /^\s*([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase() ?? "http"
  return scheme === "https" ? "http" : scheme
}
