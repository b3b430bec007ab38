/** The dashboard's entry point. */
import { render } from "preact"
import "./style.css"
import { Frame, Starting } from "./frame.tsx"
import { startLive } from "./live.ts"
import { DASHBOARD_MENU } from "./navigation.ts"
import { ROUTES } from "./pages/pages.tsx"
import { Routed } from "./routed.tsx"
import { GlobalSearch } from "./search.tsx"
import { begin, readSession, session } from "./session.ts"
import { SignIn } from "./sign-in.tsx"

function Dashboard() {
  const state = session.value
  if (state.kind === "unknown") return <Starting />
  if (state.kind === "signed-out") return <SignIn reason={state.reason} />
  const signInAgain = async () => {
    await readSession("Your session has ended. Sign in to go on where you were.")
    // Another tab of this browser has signed in.
    if (session.value.kind === "signed-in") startLive()
  }
  return (
    <Frame
      brand="Posthorn"
      home="/"
      menu={DASHBOARD_MENU}
      search={<GlobalSearch />}
      signInAgain={signInAgain}
    >
      <Routed routes={ROUTES} home="/" brand="Posthorn" />
    </Frame>
  )
}

render(<Dashboard />, document.getElementById("app")!)
void begin("dashboard")
