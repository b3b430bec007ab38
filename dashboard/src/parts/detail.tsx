/** The page of one thing, or why it cannot be shown: an old id in the address, or an error. */
import type { ComponentChildren } from "preact"
import type { Resource } from "../resource.ts"
import { Empty, Failure, Heading, Skeleton } from "../ui/basics.tsx"

export interface ListLink {
  readonly href: string
  readonly title: string
}

interface DetailProps<T> {
  readonly of: Resource<T>
  /** "delivery". */
  readonly what: string
  /** The kind of name in its address. */
  readonly by?: "id" | "name"
  /** Why a known address may lead nowhere now. */
  readonly why: string
  readonly list: ListLink
  readonly children: (data: T) => ComponentChildren
}

export function Detail<T>({ of, what, by = "id", why, list, children }: DetailProps<T>) {
  const { data, error, reload } = of
  if (data !== null && error?.status !== 404)
    return (
      <>
        {children(data)}
        {error !== null && <Failure error={error} retry={reload} />}
      </>
    )
  const title = what.replace(/^./, (letter) => letter.toUpperCase())
  return (
    <>
      <Heading title={title} above={<Above list={list} />} />
      {error === null ? (
        <Skeleton lines={12} />
      ) : error.status === 404 ? (
        <Empty title={`There is no ${what} with this ${by}.`}>
          <p>{why}</p>
          <a class="button" href={list.href}>
            {list.title}
          </a>
        </Empty>
      ) : (
        <Failure error={error} retry={reload} />
      )}
    </>
  )
}

/** The link above a heading. */
export function Above({ list }: { readonly list: ListLink }) {
  return <a href={list.href}>{list.title}</a>
}
