/** One Chromium for all tests of a process. It ends with the process. */
import { type Browser, chromium } from "playwright-core"
import { requireTool } from "../../support/tools.ts"

/** Leads to the site as a browser reaches it beyond loopback: by plain HTTP, in a context that is not secure. */
export const PLAIN_HOST = "plain.test"

let launched: Promise<Browser> | undefined

export function openChromium(): Promise<Browser> {
  launched ??= chromium.launch({
    executablePath: requireTool("chromium"),
    args: [`--host-resolver-rules=MAP ${PLAIN_HOST} 127.0.0.1`],
  })
  return launched
}
