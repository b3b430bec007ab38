/** Sends dead letters again, or discards them: a count first, then a task for each filter. */
import { useEffect, useState } from "preact/hooks"
import { api, type Query } from "../api.ts"
import { plural } from "../format.ts"
import { toTask } from "../links.ts"
import { navigate } from "../router.ts"
import type { Task } from "../types.ts"
import { Button } from "../ui/basics.tsx"
import { FormDialog } from "../ui/dialog.tsx"
import { notify } from "../ui/notices.tsx"

/** The API's parameters. */
export type DeadFilter = Query

interface BulkProps {
  /** The selection in words: "2 groups". */
  readonly of: string
  readonly filters: readonly DeadFilter[]
  readonly onDone: () => void
}

type Action = "retry" | "discard"

interface Count {
  readonly count: number
  /** Older ones were not counted; null when all were. */
  readonly searchedTo?: string | null
}

/** The buttons, and the dialog that asks. */
export function BulkActions(props: BulkProps) {
  const [action, setAction] = useState<Action | null>(null)
  return (
    <>
      <Button needs="Change" kind="primary" onClick={() => setAction("retry")}>
        Send {props.of} again
      </Button>
      <Button needs="Change" kind="danger" onClick={() => setAction("discard")}>
        Discard {props.of}
      </Button>
      {action !== null && <Confirm {...props} action={action} onClose={() => setAction(null)} />}
    </>
  )
}

function Confirm({
  of,
  filters,
  action,
  onDone,
  onClose,
}: BulkProps & { readonly action: Action; readonly onClose: () => void }) {
  const count = useCount(filters)
  const start = async () => {
    const tasks = await Promise.all(
      filters.map((filter) => api.post<Task>(`/dead-letter/${action}`, bodyOf(filter))),
    )
    notify("good", action === "retry" ? "They are being sent again." : "They are being discarded.")
    onDone()
    if (tasks.length === 1) navigate(toTask(tasks[0]!.id))
  }
  const isMore = count?.searchedTo != null
  const letters = count === null ? "…" : plural(count.count, "dead letter")
  const what = isMore ? "all that fit" : letters
  return (
    <FormDialog
      title={action === "retry" ? `Send ${of} again` : `Discard ${of}`}
      submit={action === "retry" ? `Send ${what} again` : `Discard ${what}`}
      kind={action === "retry" ? "primary" : "danger"}
      onSubmit={start}
      onClose={onClose}
    >
      <div class="question">
        <p aria-live="polite">
          {count === null
            ? "Counting …"
            : isMore
              ? `${letters} of the newest 10 000 fit now. Older ones that fit are taken too.`
              : `${plural(count.count, "dead letter fits", "dead letters fit")} now.`}
        </p>
        <p>
          {action === "retry"
            ? "Each starts at its first attempt, with the same message id. Paused and disabled endpoints keep theirs."
            : "They leave this list and are not sent. Their records stay until their retention ends."}
        </p>
        <p>The work is a task: you see its progress, and can stop it.</p>
      </div>
    </FormDialog>
  )
}

function useCount(filters: readonly DeadFilter[]): Count | null {
  const [count, setCount] = useState<Count | null>(null)
  useEffect(() => {
    const read = (filter: DeadFilter) => api.get<Count>("/dead-letter/count", { ...filter, bounded: true })
    Promise.all(filters.map(read)).then(
      (counts) => setCount(sumOf(counts)),
      (error: Error) => notify("bad", error.message),
    )
  }, [])
  return count
}

function sumOf(counts: readonly Count[]): Count {
  return {
    count: counts.reduce((sum, one) => sum + one.count, 0),
    searchedTo: counts.find(({ searchedTo }) => searchedTo != null)?.searchedTo ?? null,
  }
}

/** A body has numbers and lists where a query has texts. */
function bodyOf({ event_types, status_code_class, ...rest }: DeadFilter): object {
  const given = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined)
  return {
    ...Object.fromEntries(given),
    ...(event_types != null && { event_types: [event_types].flat() }),
    ...(status_code_class != null && { status_code_class: Number(status_code_class) }),
  }
}
