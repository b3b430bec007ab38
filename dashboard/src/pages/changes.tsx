/** The record of changes. */
import { ChangeList } from "../parts/changes.tsx"
import { filterOf } from "../router.ts"
import { Heading } from "../ui/basics.tsx"
import { TextFilter } from "../ui/filters.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"

export function Changes() {
  return (
    <>
      <Heading title="Changes" />
      <div class="filters">
        <ApplicationFilter />
        <TextFilter name="endpoint_id" label="Endpoint" placeholder="ep_…" />
      </div>
      <ChangeList appId={filterOf("app_id")} endpointId={filterOf("endpoint_id")} />
    </>
  )
}
