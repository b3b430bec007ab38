/** The page of an address, from a table of patterns. */
import type { ComponentType } from "preact"
import { useEffect } from "preact/hooks"
import { match, path } from "./router.ts"
import { Empty } from "./ui/basics.tsx"

export interface PageProps {
  readonly params: { readonly [name: string]: string }
}

export interface Route {
  /** `/endpoints/:app/:id`. */
  readonly pattern: string
  readonly title: string
  readonly page: ComponentType<PageProps>
}

export function Routed({
  routes,
  home,
  brand,
}: {
  /** The last that matches counts: names such as `/alerts/rules` follow `/alerts/:id`. */
  readonly routes: readonly Route[]
  readonly home: string
  readonly brand: string
}) {
  let found: { route: Route; params: PageProps["params"] } | null = null
  for (const route of routes) {
    const params = match(route.pattern, path.value)
    if (params !== null) found = { route, params }
  }
  const title = found?.route.title ?? "No such page"
  useEffect(() => {
    document.title = `${title} · ${brand}`
  }, [title])
  if (found === null)
    return (
      <Empty title="No such page">
        <p>
          The address <code>{path.value}</code> leads nowhere. Use the menu, or <a href={home}>begin again</a>
          .
        </p>
      </Empty>
    )
  const Page = found.route.page
  // Another address of the same page begins anew.
  return <Page key={path.value} params={found.params} />
}
