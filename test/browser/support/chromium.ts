/** One Chromium for all tests of a process. It ends with the process. */
import { type Browser, chromium } from "playwright-core"
import { requireTool } from "../../support/tools.ts"

let launched: Promise<Browser> | undefined

export function openChromium(): Promise<Browser> {
  launched ??= chromium.launch({ executablePath: requireTool("chromium") })
  return launched
}
