/** Reads from the API: the last answer stays on the page while a newer one is read. */
import { useEffect, useRef, useState } from "preact/hooks"
import { ApiError, api, pathWith, type Query } from "./api.ts"
import { onRefresh } from "./refresh.ts"

export interface Resource<T> {
  /** Null until the first answer. */
  readonly data: T | null
  readonly error: ApiError | null
  /** Whether an answer for this address is awaited; the data is of the address before, or null. */
  readonly isLoading: boolean
  reload(): void
}

const UNREADABLE = { detail: "The answer is not valid JSON. A proxy before the server may have changed it." }

interface Options {
  /** Reads again when something of the kind happened, at most once in two seconds, and every 30 seconds. */
  readonly live?: boolean
}

/** A null path reads nothing. */
export function useResource<T>(
  path: string | null,
  query: Query = {},
  { live = false }: Options = {},
): Resource<T> {
  const address = path === null ? null : pathWith(path, query)
  const [state, setState] = useState<{
    readonly address: string | null
    readonly data: T | null
    readonly error: ApiError | null
  }>({ address: null, data: null, error: null })
  const [round, setRound] = useState(0)
  const reading = useRef<"idle" | "reading" | "reading, then again">("idle")
  const reload = () => setRound((one) => one + 1)
  useEffect(() => {
    if (address === null) return
    const aborter = new AbortController()
    reading.current = "reading"
    const finish = (data: T | null, error: ApiError | null) => {
      if (aborter.signal.aborted) return
      if (reading.current === "reading, then again") reload()
      reading.current = "idle"
      // After a failure the page keeps the data of the same address.
      setState((before) => ({
        address,
        data: error === null ? data : before.address === address ? before.data : null,
        error,
      }))
    }
    api.get<T>(address, {}, aborter.signal).then(
      (data) => finish(data, null),
      (error) => finish(null, error instanceof ApiError ? error : new ApiError(0, UNREADABLE)),
    )
    return () => {
      aborter.abort()
      reading.current = "idle"
    }
  }, [address, round])
  useEffect(() => {
    if (!live) return
    // A refresh waits for the answer under way: a server that takes longer than the refreshes are apart would never be heard.
    return onRefresh(() => {
      if (reading.current === "idle") reload()
      else reading.current = "reading, then again"
    })
  }, [live])
  const isCurrent = state.address === address
  return {
    data: state.data,
    error: isCurrent ? state.error : null,
    isLoading: address !== null && !isCurrent,
    reload,
  }
}

export interface List<T> {
  readonly data: readonly T[]
  readonly iterator: string | null
  readonly prevIterator: string | null
  readonly done: boolean
  /** Of a filter without an index: the time down to which was searched; null when all was. */
  readonly searchedTo?: string | null
}

/** A list of one row, for an id that was asked for. */
export function listOf<T>({ data, ...rest }: Resource<T>): Resource<List<T>> {
  return {
    ...rest,
    data: data === null ? null : { data: [data], iterator: null, prevIterator: null, done: true },
  }
}
