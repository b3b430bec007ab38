/** Who is signed in: a key or a login link is exchanged for a session. */
import { signal } from "@preact/signals"
import type { Capability } from "../../src/resources/key-record.ts"
import { type ApiError, api, bearer, type Page, page, sessionEnded } from "./api.ts"
import { notify } from "./ui/notices.tsx"

export type { Capability }

export interface Whoami {
  readonly envId: string
  readonly appId: string | null
  readonly name: string
  /** The id of this session. */
  readonly browserSession: string | null
  readonly scope: "admin" | "application" | "read" | "agent"
  readonly capabilities: readonly Capability[] | null
}

export type SessionState =
  | { readonly kind: "unknown" }
  | { readonly kind: "signed-out"; readonly reason: string | null }
  | { readonly kind: "signed-in"; readonly who: Whoami }

export const session = signal<SessionState>({ kind: "unknown" })

/** `Change` is for operators alone. Every session of a page may view: each capability includes ViewBase. */
export type Right = Exclude<Capability, "ViewBase"> | "Change"

/** The capabilities that imply another. */
const INCLUDED_IN: { readonly [R in Right]?: readonly Capability[] } = {
  ViewEndpointSecret: ["ManageEndpointSecret", "ManageEndpoint"],
  ManageEndpointSecret: ["ManageEndpoint"],
}

export function may(needed: Right): boolean {
  const state = session.value
  if (state.kind !== "signed-in") return false
  const { scope, capabilities } = state.who
  if (scope === "read") return false
  if (needed === "Change") return scope === "admin"
  if (capabilities === null) return true
  return [needed, ...(INCLUDED_IN[needed] ?? [])].some((one) => capabilities.includes(one))
}

/** Whether the page is shown in a frame, where browsers keep its cookies from the server. */
const isEmbedded = window.parent !== window

export async function begin(which: Page): Promise<void> {
  page.value = which
  const [, code] = /^#code=(.+)$/.exec(location.hash) ?? []
  if (code !== undefined) {
    // The code works once, and is nobody's business: not in the history, and not in a bookmark.
    history.replaceState(null, "", location.pathname + location.search)
    const failed = await signIn({ code })
    if (failed === null) return
    // An operator who opens the same link again is signed in already. A portal's link may be of another customer.
    if (which === "dashboard") await readSession()
    if (session.value.kind !== "signed-in") session.value = { kind: "signed-out", reason: failed }
    return
  }
  if (isEmbedded && which === "portal") {
    session.value = { kind: "signed-out", reason: "This page needs a new link: reload the page around it." }
    return
  }
  await readSession()
}

/** Without a session, `reason` stands on the sign-in page. */
export async function readSession(reason: string | null = null): Promise<void> {
  try {
    const who = await api.get<Whoami>("/auth/whoami")
    sessionEnded.value = null
    session.value = { kind: "signed-in", who }
  } catch (error) {
    const isRefused = (error as { status?: number }).status === 401
    sessionEnded.value = null
    session.value = { kind: "signed-out", reason: isRefused ? reason : (error as Error).message }
  }
}

/** Null, or why it failed. */
export async function signIn(
  by: { readonly key: string } | { readonly code: string },
): Promise<string | null> {
  try {
    const cookie = !isEmbedded
    const opened = await api.post<{ readonly page: Page; readonly token: string | null }>("/auth/session", {
      ...by,
      cookie,
    })
    bearer.value = opened.token
    if (opened.page !== page.value && cookie) {
      location.href = opened.page === "portal" ? "/portal" : "/"
      return null
    }
    await readSession()
    return null
  } catch (error) {
    sessionEnded.value = null
    const { status, message } = error as ApiError
    return status === 401 && "key" in by ? `${message}. Enter another key, or open a new link.` : message
  }
}

export async function signOut(): Promise<void> {
  try {
    await api.post("/auth/logout")
  } catch (error) {
    // Without an answer the cookie still opens the session.
    if ((error as ApiError).status !== 401)
      return notify("bad", `You are still signed in. ${(error as Error).message}`)
  }
  bearer.value = null
  session.value = { kind: "signed-out", reason: "You are signed out." }
}
