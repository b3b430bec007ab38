/** Data that is read: a skeleton until it is there, and the error of a later reading beside it. */
import type { ComponentChildren } from "preact"
import type { Resource } from "../resource.ts"
import { Failure, Skeleton } from "./basics.tsx"

interface LoadedProps<T> {
  readonly of: Resource<T>
  /** About as many as there will be. */
  readonly lines?: number
  readonly children: (data: T) => ComponentChildren
}

export function Loaded<T>({ of: { data, error, reload }, lines = 3, children }: LoadedProps<T>) {
  return (
    <>
      {error !== null && <Failure error={error} retry={reload} />}
      {data === null ? error === null && <Skeleton lines={lines} /> : children(data)}
    </>
  )
}
