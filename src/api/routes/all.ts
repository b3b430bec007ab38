/** All routes, in the order of the reference page. */
import type { Routes } from "../context.ts"
import { agentRoutes } from "./agents.ts"
import { alertChannelRoutes } from "./alert-channels.ts"
import { alertRuleRoutes } from "./alert-rules.ts"
import { alertRoutes } from "./alerts.ts"
import { applicationRoutes } from "./applications.ts"
import { attemptRoutes } from "./attempts.ts"
import { batchRoutes } from "./batches.ts"
import { changeRoutes } from "./changes.ts"
import { costRoutes } from "./cost.ts"
import { deadLetterRoutes } from "./dead-letters.ts"
import { deliveryRoutes } from "./deliveries.ts"
import { deliveryStatsRoutes } from "./delivery-stats.ts"
import { endpointDetailRoutes } from "./endpoint-details.ts"
import { endpointEnableRoutes } from "./endpoint-enable.ts"
import { endpointHealthRoutes } from "./endpoint-health.ts"
import { endpointRoutes } from "./endpoints.ts"
import { environmentRoutes } from "./environment.ts"
import { eventTypeImportRoutes } from "./event-type-import.ts"
import { eventTypeRoutes } from "./event-types.ts"
import { eventRoutes } from "./events.ts"
import { exampleRoutes } from "./examples.ts"
import { healthRoutes } from "./health.ts"
import { keyRoutes } from "./keys.ts"
import { messageRoutes } from "./messages.ts"
import { operationalWebhookRoutes } from "./operational-webhooks.ts"
import { overviewRoutes } from "./overview.ts"
import { policyRoutes } from "./policies.ts"
import { portalRoutes } from "./portal.ts"
import { replayRoutes } from "./replays.ts"
import { searchRoutes } from "./search.ts"
import { sessionRoutes } from "./sessions.ts"
import { settingRoutes } from "./settings.ts"
import { sourceRoutes } from "./sources.ts"
import { taskRoutes } from "./tasks.ts"
import { usageRoutes } from "./usage.ts"
import { workerRoutes } from "./workers.ts"

export const ROUTES: readonly Routes[] = [
  applicationRoutes,
  endpointRoutes,
  endpointDetailRoutes,
  endpointHealthRoutes,
  endpointEnableRoutes,
  exampleRoutes,
  replayRoutes,
  sourceRoutes,
  messageRoutes,
  batchRoutes,
  attemptRoutes,
  deliveryRoutes,
  deadLetterRoutes,
  deliveryStatsRoutes,
  costRoutes,
  policyRoutes,
  eventTypeRoutes,
  eventTypeImportRoutes,
  portalRoutes,
  sessionRoutes,
  keyRoutes,
  changeRoutes,
  taskRoutes,
  operationalWebhookRoutes,
  usageRoutes,
  environmentRoutes,
  settingRoutes,
  overviewRoutes,
  searchRoutes,
  agentRoutes,
  workerRoutes,
  alertRoutes,
  alertRuleRoutes,
  alertChannelRoutes,
  eventRoutes,
  healthRoutes,
]
