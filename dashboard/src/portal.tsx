/** The entry point of a customer's portal: one application, as far as its capabilities allow. */
import { render } from "preact"
import "./style.css"
import { Frame, Starting } from "./frame.tsx"
import { portalMenu } from "./navigation.ts"
import { PORTAL_ROUTES } from "./pages/portal.tsx"
import { Routed } from "./routed.tsx"
import { begin, session } from "./session.ts"
import { Empty } from "./ui/basics.tsx"

function Portal() {
  const state = session.value
  if (state.kind === "unknown") return <Starting />
  if (state.kind === "signed-out") return <NeedsLink reason={state.reason} />
  const end = () => {
    session.value = { kind: "signed-out", reason: "Your session has ended." }
  }
  return (
    <Frame brand="Webhooks" home="/portal" menu={portalMenu()} signInAgain={end}>
      <Routed routes={PORTAL_ROUTES} home="/portal" brand="Webhooks" />
    </Frame>
  )
}

function NeedsLink({ reason }: { readonly reason: string | null }) {
  return (
    <main class="sign-in">
      <h1>Webhooks</h1>
      <Empty title={reason ?? "This page needs a link that signs you in."}>
        <p>Go back to the application that sent you here, and open its webhook settings again.</p>
      </Empty>
    </main>
  )
}

render(<Portal />, document.getElementById("app")!)
void begin("portal")
