/** The address of the page: its path, and its filters in the query. Links and the browser's buttons change them. */
import { computed, signal } from "@preact/signals"

const here = signal(location.pathname + location.search)

export const path = computed(() => here.value.split("?", 1)[0]!.replace(/(.)\/+$/, "$1"))
export const query = computed(() => new URLSearchParams(here.value.split("?").slice(1).join("?")))

export function navigate(to: string, { replace = false } = {}): void {
  if (to === here.value) return
  if (replace) history.replaceState(null, "", to)
  else history.pushState(null, "", to)
  const isOtherPage = to.split("?", 1)[0] !== path.value
  here.value = to
  if (isOtherPage) scrollTo(0, 0)
}

/** Changes filters; an empty one is removed. A new filter begins at the first page of a list. */
export function setFilters(
  changes: { readonly [name: string]: string | null },
  { replace = false } = {},
): void {
  const next = new URLSearchParams(query.value)
  if (!("iterator" in changes)) next.delete("iterator")
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name)
    else next.set(name, value)
  }
  const text = next.toString()
  navigate(text === "" ? path.value : `${path.value}?${text}`, { replace })
}

export function filterOf(name: string): string | null {
  return query.value.get(name)
}

addEventListener("popstate", () => {
  here.value = location.pathname + location.search
})

/** Links within the page load nothing. */
document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
  const link = (event.target as Element).closest?.("a") ?? null
  if (link === null || link.target !== "" || link.hasAttribute("download")) return
  if (link.origin !== location.origin) return
  if (link.pathname === "/docs" || link.getAttribute("href")?.startsWith("#")) return
  event.preventDefault()
  navigate(link.pathname + link.search)
})

/** The parameters of a pattern such as `/endpoints/:app/:id`; null if the path is another. */
export function match(pattern: string, given: string): { readonly [name: string]: string } | null {
  const [wanted, parts] = [pattern.split("/"), given.split("/")]
  if (wanted.length !== parts.length) return null
  const found: { [name: string]: string } = {}
  for (const [i, one] of wanted.entries()) {
    const part = parts[i]!
    if (!one.startsWith(":")) {
      if (one !== part) return null
    } else {
      try {
        found[one.slice(1)] = decodeURIComponent(part)
      } catch {
        return null
      }
    }
  }
  return found
}
