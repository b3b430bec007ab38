/** The filters of keys and sessions: those of the organization itself, or of one application. */
import { filterOf } from "../router.ts"
import { ChoiceFilter } from "../ui/filters.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"

const CHOICES = [["true", "The organization only"]] as const

/** Each hides the other, because the API takes one of them. */
export function OwnerFilter() {
  return (
    <div class="filters">
      {filterOf("app_id") === null && (
        <ChoiceFilter name="organization" label="Belongs to" choices={CHOICES} />
      )}
      {filterOf("organization") === null && <ApplicationFilter placeholder="All" />}
    </div>
  )
}

/** For the API. */
export function ownerQuery() {
  return { app_id: filterOf("app_id"), organization: filterOf("organization") }
}
