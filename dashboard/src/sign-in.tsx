/** The page before the dashboard: a key, or a login link, opens a session. */
import { useState } from "preact/hooks"
import { signIn } from "./session.ts"
import { Field } from "./ui/dialog.tsx"

export function SignIn({ reason }: { readonly reason: string | null }) {
  const [error, setError] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (isBusy) return
    setBusy(true)
    const key = new FormData(event.target as HTMLFormElement).get("key")
    setError(await signIn({ key: String(key).trim() }))
    setBusy(false)
  }
  return (
    <main class="sign-in stack">
      <h1 class="brand">
        <img src="/icon.svg" alt="" />
        Posthorn
      </h1>
      {reason !== null && (
        <p class="banner info" role="status">
          {reason}
        </p>
      )}
      <form class="card" onSubmit={submit}>
        <Field
          label="Key"
          hint={
            <>
              A key of the organization, from <code>posthorn keys create</code>.
            </>
          }
        >
          <input
            name="key"
            type="password"
            required
            autocomplete="current-password"
            placeholder="ph_…"
            spellcheck={false}
          />
        </Field>
        {error !== null && (
          <p class="form-error" role="alert">
            {error}
          </p>
        )}
        <div class="dialog-actions">
          <button type="submit" class="button primary" aria-disabled={isBusy} aria-busy={isBusy}>
            Sign in
          </button>
        </div>
      </form>
      <p class="soft">
        Or open a new link: <code>posthorn dashboard</code> prints one that works once.
      </p>
    </main>
  )
}
