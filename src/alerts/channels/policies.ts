/** How the notifications of a channel are retried: within a day, since a later notification is of no use. */

import type { AlertChannelKind } from "../../core/alert-channel-kinds.ts"
import { DAY, type PolicyInput } from "../../core/policy.ts"

const BASE: PolicyInput = {
  delays: [5, 30, 120, 600, 1800, 3600],
  then: 7200,
  maxAge: DAY,
  jitter: [0.8, 1.2],
  // Disabled, the channel would lose notifications until somebody notices.
  gone: false,
  autoDisable: false,
  breaker: true,
  budget: false,
}

/**
 * Slack, PagerDuty and mail get the end of an alert after its beginning: a late trigger would open an incident again. There a 4xx is for
 * good, so that a refused notification does not block the next. A receiver of webhooks may answer 404 during its own deployment.
 */
const ORDERED = { retry: { ...BASE, retryable: "transient" }, ordered: true } as const
const UNORDERED = { retry: { ...BASE, retryable: "non-2xx" }, ordered: false } as const

export const CHANNEL_POLICIES: {
  readonly [K in AlertChannelKind]: { readonly retry: PolicyInput; readonly ordered: boolean }
} = { webhook: UNORDERED, slack: ORDERED, pagerduty: ORDERED, mail: ORDERED }
