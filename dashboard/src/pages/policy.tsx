/** One retry policy. */
import { useState } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import { Above, Detail } from "../parts/detail.tsx"
import { Schedule } from "../parts/schedule.tsx"
import { useResource } from "../resource.ts"
import type { PageProps } from "../routed.tsx"
import { navigate } from "../router.ts"
import type { NamedPolicy } from "../types.ts"
import { Badge, Button, Card, Heading } from "../ui/basics.tsx"
import { ask } from "../ui/dialog.tsx"
import { notify } from "../ui/notices.tsx"
import { Payload } from "../ui/payload.tsx"
import { PolicyForm } from "./policies.tsx"

const LIST = { href: "/policies", title: "Policies" }

export function PolicyPage({ params }: PageProps) {
  const path = pathTo("/retry-policy", params.name!)
  const found = useResource<NamedPolicy>(path, {}, { live: true })
  return (
    <Detail
      of={found}
      what="policy"
      by="name"
      why="It may have been deleted. Deliveries under way keep its schedule."
      list={LIST}
    >
      {(data) => <Shown data={data} path={path} reload={found.reload} />}
    </Detail>
  )
}

interface ShownProps {
  readonly data: NamedPolicy
  /** In the API. */
  readonly path: string
  readonly reload: () => void
}

function Shown({ data, path, reload }: ShownProps) {
  const { name, preset, policy } = data
  const [isEditing, setEditing] = useState(false)
  const remove = () =>
    ask({
      title: `Delete ${name}`,
      text: <p>A policy that endpoints use cannot be deleted. Deliveries under way keep its schedule.</p>,
      action: "Delete the policy",
      kind: "danger",
      async run() {
        await api.delete(path)
        notify("good", `The policy ${name} is deleted.`)
        navigate("/policies")
      },
    })
  return (
    <>
      <Heading title={name} above={<Above list={LIST} />}>
        {preset ? (
          <Badge tone="idle">preset, cannot be changed</Badge>
        ) : (
          <>
            <Button needs="Change" onClick={() => setEditing(true)}>
              Edit
            </Button>
            <Button needs="Change" kind="danger" onClick={remove}>
              Delete
            </Button>
          </>
        )}
      </Heading>
      <Card title="Schedule">
        <Schedule policy={policy} />
      </Card>
      <Card title="Fields">
        <Payload value={policy} label="The policy" />
      </Card>
      {isEditing && <PolicyForm known={data} onClose={() => setEditing(false)} onSaved={reload} />}
    </>
  )
}
