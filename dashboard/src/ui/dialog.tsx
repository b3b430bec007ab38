/** Dialogs: a form or a question over the page. */

import { signal } from "@preact/signals"
import { type ComponentChildren, cloneElement, toChildArray, type VNode } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null
    const dialog = element.current!
    dialog.showModal()
    return () => {
      dialog.close()
      // The browser itself returns the focus only from a dialog that stays in the page.
      opener?.focus()
    }
  }, [])
  return (
    <dialog ref={element} aria-label={title} onClose={onClose} onCancel={onClose}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="close" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  )
}

interface FormDialogProps extends DialogProps {
  readonly submit: string
  readonly kind?: "primary" | "danger"
  /** Resolves when it is done: the dialog closes. Its error is shown in the dialog. */
  readonly onSubmit: (values: FormData) => Promise<unknown>
}

/** An error stands above the buttons, and begins with the name of its field. */
export function FormDialog({ submit, kind = "primary", onSubmit, children, ...dialog }: FormDialogProps) {
  const [error, setError] = useState<Error | null>(null)
  const [isBusy, setBusy] = useState(false)
  const run = async (event: SubmitEvent) => {
    event.preventDefault()
    if (isBusy) return
    setBusy(true)
    setError(null)
    try {
      await onSubmit(new FormData(event.target as HTMLFormElement))
      dialog.onClose()
    } catch (failed) {
      setError(failed as Error)
      setBusy(false)
    }
  }
  return (
    <Dialog {...dialog}>
      <form onSubmit={run}>
        {children}
        {error !== null && (
          <p class="form-error" role="alert">
            {error.message}
          </p>
        )}
        <div class="dialog-actions">
          <button type="button" class="button plain" onClick={dialog.onClose}>
            Cancel
          </button>
          <button type="submit" class={`button ${kind}`} aria-disabled={isBusy} aria-busy={isBusy}>
            {submit}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** Label and hint are those of the first of the children, which is the input. */
export function Field({
  label,
  hint,
  children,
}: {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly children: ComponentChildren
}) {
  const id = useId()
  const [input, ...others] = toChildArray(children)
  const described = hint === undefined ? {} : { "aria-describedby": `${id}-hint` }
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {label}
      </label>
      {cloneElement(input as VNode, { id, ...described })}
      {others}
      {hint !== undefined && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  )
}

interface Question {
  readonly title: string
  readonly text: ComponentChildren
  readonly action: string
  readonly kind?: "primary" | "danger"
  readonly run: () => Promise<unknown>
}

const question = signal<Question | null>(null)

/** Asks before something is done that cannot be undone, or that concerns many. */
export function ask(asked: Question): void {
  question.value = asked
}

export function Questions() {
  const asked = question.value
  if (asked === null) return null
  return (
    <FormDialog
      title={asked.title}
      submit={asked.action}
      kind={asked.kind ?? "primary"}
      onClose={() => {
        question.value = null
      }}
      onSubmit={asked.run}
    >
      <div class="question">{asked.text}</div>
    </FormDialog>
  )
}
