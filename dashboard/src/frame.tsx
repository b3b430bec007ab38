/** The frame of each page: the menu, the top bar, and the banners. */
import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { Banners } from "./banners.tsx"
import { Help } from "./help.tsx"
import { isHelpOpen, startKeyboard } from "./keyboard.ts"
import { startLive, stopLive, streamState } from "./live.ts"
import type { MenuGroup, MenuItem } from "./navigation.ts"
import { path } from "./router.ts"
import { session, signOut } from "./session.ts"
import { nextTheme, theme } from "./theme.ts"
import { Badge, Skeleton } from "./ui/basics.tsx"
import { Questions } from "./ui/dialog.tsx"
import { Notices } from "./ui/notices.tsx"

interface FrameProps {
  readonly brand: string
  readonly home: string
  readonly menu: readonly MenuGroup[]
  readonly search?: ComponentChildren
  readonly signInAgain: () => unknown
  readonly children: ComponentChildren
}

export function Frame({ brand, home, menu, search, signInAgain, children }: FrameProps) {
  const [isMenuOpen, setMenuOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  useEffect(() => {
    startLive()
    return stopLive
  }, [])
  const menuNow = useRef(menu)
  menuNow.current = menu
  useEffect(() => startKeyboard(() => menuNow.current), [])
  const isFirst = useRef(true)
  useEffect(() => {
    setMenuOpen(false)
    // Screen readers begin at the new page; the first page keeps the browser's own focus.
    if (!isFirst.current) main.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [path.value])
  return (
    <div class="frame">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <nav class={isMenuOpen ? "open" : ""} aria-label="Pages" id="menu">
        <a class="brand" href={home}>
          <img src="/icon.svg" alt="" />
          {brand}
        </a>
        {menu.map((group) => (
          <Group key={group.title} group={group} home={home} />
        ))}
      </nav>
      <div>
        <header class="topbar">
          <button
            type="button"
            class="button plain menu-button"
            aria-label="Menu"
            aria-expanded={isMenuOpen}
            aria-controls="menu"
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            ☰
          </button>
          {search}
          <span class="spring" />
          <LiveState />
          <button
            type="button"
            class="icon-button"
            title={`Colours: ${theme.value}`}
            aria-label={`Colours: ${theme.value}. Change`}
            onClick={nextTheme}
          >
            {theme.value === "light" ? "☀" : theme.value === "dark" ? "☾" : "◐"}
          </button>
          <button
            type="button"
            class="icon-button"
            title="Keys (?)"
            aria-label="Keys"
            onClick={() => {
              isHelpOpen.value = true
            }}
          >
            ?
          </button>
          <Who />
        </header>
        <Banners signInAgain={signInAgain} />
        <main id="page" tabIndex={-1} ref={main}>
          {children}
        </main>
      </div>
      <Help menu={menu} />
      <Questions />
      <Notices />
    </div>
  )
}

function Group({ group, home }: { readonly group: MenuGroup; readonly home: string }) {
  const isAt = ({ path: to, rows = to }: MenuItem) =>
    path.value === to || (rows !== home && path.value.startsWith(`${rows}/`))
  return (
    <>
      <p class="group">{group.title}</p>
      <ul class="menu">
        {group.items.map((item) => (
          <li key={item.path}>
            <a href={item.path} aria-current={isAt(item) ? "page" : undefined}>
              {item.title}
            </a>
          </li>
        ))}
      </ul>
    </>
  )
}

function LiveState() {
  const { kind } = streamState.value
  if (kind === "live") return <Badge tone="good">live</Badge>
  return (
    <Badge tone={kind === "connecting" ? "idle" : "warn"}>
      {kind === "connecting" ? "connecting" : "not live"}
    </Badge>
  )
}

function Who() {
  const state = session.value
  if (state.kind !== "signed-in") return null
  const { name, scope } = state.who
  return (
    <>
      <span class="who" title={name}>
        {name}
        {scope === "read" && " (read-only)"}
      </span>
      <button type="button" class="button plain" onClick={signOut}>
        Sign out
      </button>
    </>
  )
}

/** Until it is known who is signed in. */
export function Starting() {
  return (
    <main>
      <Skeleton lines={10} />
    </main>
  )
}
