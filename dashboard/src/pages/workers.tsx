/** The processes that deliver, and the lanes of endpoints that wait. */
import { number } from "../format.ts"
import { LaneList } from "../parts/lanes.tsx"
import { useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import { Badge, Card, Empty, Heading, Time } from "../ui/basics.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"
import { Loaded } from "../ui/loaded.tsx"
import { Table } from "../ui/table.tsx"

interface Worker {
  readonly id: string
  readonly name: string
  readonly alive: boolean
  readonly aliveUntil: string | null
  readonly lanes: number
  readonly inHand: number
}

export function Workers() {
  const workers = useResource<{ readonly data: readonly Worker[] }>("/worker", {}, { live: true })
  return (
    <>
      <Heading title="Workers and lanes" />
      <Card title="Workers" aside="Processes that deliver">
        <Loaded of={workers}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="No process delivers">
                <p>
                  Messages are stored and wait. Start <code>posthorn serve</code> or{" "}
                  <code>posthorn worker</code>.
                </p>
              </Empty>
            ) : (
              <Table
                label="Workers"
                rows={data}
                keyOf={({ id }) => id}
                columns={[
                  { title: "Name", cell: ({ name }) => name },
                  {
                    title: "State",
                    cell: ({ alive, aliveUntil }) => (
                      <>
                        <Badge tone={alive ? "good" : "bad"}>{alive ? "alive" : "lost"}</Badge>{" "}
                        {!alive && aliveUntil !== null && <Time at={aliveUntil} />}
                      </>
                    ),
                  },
                  { title: "Lanes", align: "right", cell: ({ lanes }) => number(lanes) },
                  { title: "In hand", align: "right", cell: ({ inHand }) => number(inHand) },
                  { title: "Id", minor: true, cell: ({ id }) => <code>{id}</code> },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
      <Card title="Lanes" aside="Endpoints where deliveries wait">
        <div class="filters">
          <ApplicationFilter />
        </div>
        <LaneList appId={filterOf("app_id")} />
      </Card>
    </>
  )
}
