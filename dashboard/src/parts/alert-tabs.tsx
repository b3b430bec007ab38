/** The tabs of the pages about alerts, and the badge of an alert's state. */
import { path } from "../router.ts"
import type { Alert } from "../types.ts"
import { Badge, type Tone } from "../ui/basics.tsx"

const TABS = [
  ["/alerts", "Alerts"],
  ["/alerts/rules", "Rules"],
  ["/alerts/channels", "Channels"],
  ["/alerts/silences", "Silences"],
] as const

export function AlertTabs() {
  return (
    <nav class="tabs" aria-label="Alerts">
      {TABS.map(([to, title]) => (
        <a key={to} href={to} aria-current={path.value === to ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  )
}

const TONES: { readonly [S in Alert["state"]]: Tone } = {
  pending: "idle",
  firing: "bad",
  acknowledged: "warn",
  silenced: "idle",
  resolved: "good",
}

export function AlertState({ state }: { readonly state: Alert["state"] }) {
  return <Badge tone={TONES[state]}>{state}</Badge>
}

/** Where the subject of an alert is shown: an endpoint's id, or APP_ID.NAME of an agent. */
export function hrefOfSubject(subject: string | null): string | null {
  if (subject === null) return null
  const [app, agent] = subject.split(".")
  if (app!.startsWith("app_") && agent !== undefined) return `/agents/${app}/${agent}`
  return null
}
