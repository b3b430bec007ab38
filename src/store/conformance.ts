/** What every store must do, run over each implementation with a real database. */
import { accepting } from "./conformance/accepting.ts"
import { activity } from "./conformance/activity.ts"
import { additions } from "./conformance/additions.ts"
import { counts } from "./conformance/counts.ts"
import { entries } from "./conformance/entries.ts"
import { expunging } from "./conformance/expunging.ts"
import { fetching } from "./conformance/fetching.ts"
import { filters } from "./conformance/filters.ts"
import { messageTasks } from "./conformance/message-tasks.ts"
import { pages } from "./conformance/pages.ts"
import { resources } from "./conformance/resources.ts"
import { retention } from "./conformance/retention.ts"
import { rollups } from "./conformance/rollups.ts"
import { searchBound } from "./conformance/search-bound.ts"
import { settling } from "./conformance/settling.ts"
import { type StoreUnderTest, stageOn } from "./conformance/stage.ts"
import { survey } from "./conformance/survey.ts"
import { tasks } from "./conformance/tasks.ts"
import { tenants } from "./conformance/tenants.ts"

export { lanesOf } from "./conformance/lanes.ts"
export {
  AT,
  claimed,
  held,
  laneFetch,
  newest,
  ORG,
  OTHER_ORG,
  sample,
  settlement,
} from "./conformance/samples.ts"

const TOPICS = [
  accepting,
  fetching,
  settling,
  rollups,
  activity,
  survey,
  additions,
  expunging,
  tasks,
  messageTasks,
  retention,
  pages,
  filters,
  counts,
  searchBound,
  tenants,
  resources,
  entries,
]

export function storeConformance(name: string, open: () => Promise<StoreUnderTest>): void {
  for (const topic of TOPICS) topic(name, stageOn(open))
}
