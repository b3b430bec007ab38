/** Puts the parts of alerts together. */
import { statfs } from "node:fs/promises"
import { dirname } from "node:path"
import type { Clock } from "../core/clock.ts"
import type { Ids } from "../core/ids.ts"
import type { Vault } from "../core/vault.ts"
import type { Logger } from "../observe/log.ts"
import type { Store } from "../store/store.ts"
import { AlertStore } from "./alert-store.ts"
import { Alerts } from "./alerts.ts"
import { AlertEvaluator } from "./evaluator.ts"
import { type DiskSpace, LocalAlerts } from "./local-alerts.ts"
import type { Notifier } from "./notifier.ts"

export interface OpenAlertsParts {
  readonly store: Store
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
  readonly notifier: Notifier
  readonly vault: Vault
  /** `sqlite:<path>` or `postgres://…`. */
  readonly storeUrl: string
}

export interface OpenAlerts {
  readonly alerts: Alerts
  readonly evaluator: AlertEvaluator
}

export function openAlerts({ storeUrl, vault, ...parts }: OpenAlertsParts): OpenAlerts {
  const alertStore = new AlertStore(parts.store, parts.clock)
  const local = new LocalAlerts({
    ...parts,
    deployment: vault.fingerprint.slice(0, 8),
    diskSpace: diskOf(storeUrl),
  })
  const shared = { ...parts, local, alertStore }
  return { alerts: new Alerts(shared), evaluator: new AlertEvaluator(shared) }
}

function diskOf(storeUrl: string): (() => Promise<DiskSpace>) | null {
  const [, file] = /^sqlite:(.+)$/s.exec(storeUrl) ?? []
  if (file === undefined || file === ":memory:") return null
  return async () => {
    // `bavail`: blocks that the process may use; some are reserved for root.
    const { bavail, blocks, bsize } = await statfs(dirname(file))
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  }
}
