/** One alert: acknowledge it, or silence its rule for a while. */
import { useState } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import { AlertState, hrefOfSubject } from "../parts/alert-tabs.tsx"
import { Above, Detail } from "../parts/detail.tsx"
import { Why } from "../parts/health.tsx"
import { KeyName } from "../parts/key-name.tsx"
import { SilenceForm } from "../parts/silence-form.tsx"
import { useResource } from "../resource.ts"
import type { PageProps } from "../routed.tsx"
import type { Alert } from "../types.ts"
import { Button, Card, Fact, Facts, Heading, Time } from "../ui/basics.tsx"
import { notify } from "../ui/notices.tsx"

const LIST = { href: "/alerts", title: "Alerts" }

export function AlertPage({ params }: PageProps) {
  const path = pathTo("/alert", params.id!)
  const found = useResource<Alert>(path, {}, { live: true })
  return (
    <Detail of={found} what="alert" why="Alerts that ended are removed after a while." list={LIST}>
      {(data) => <Shown data={data} path={path} reload={found.reload} />}
    </Detail>
  )
}

interface ShownProps {
  readonly data: Alert
  /** In the API. */
  readonly path: string
  readonly reload: () => void
}

function Shown({ data, path, reload }: ShownProps) {
  const [isSilencing, setSilencing] = useState(false)
  const acknowledge = async () => {
    await api.post(`${path}/acknowledge`)
    notify("good", "You have taken this alert. It is not notified again until it ends.")
    reload()
  }
  const isOpen = data.endedAt === null
  const href = hrefOfSubject(data.subject)
  return (
    <>
      <Heading title={`${data.rule} ${data.name}`} above={<Above list={LIST} />}>
        {isOpen && data.acknowledgedAt === null && (
          <Button kind="primary" needs="Change" onClick={acknowledge}>
            Acknowledge
          </Button>
        )}
        {isOpen && (
          <Button needs="Change" onClick={() => setSilencing(true)}>
            Silence
          </Button>
        )}
      </Heading>
      <Card>
        <p>
          <Why text={data.detail} />
        </p>
        <Facts>
          <Fact name="State">
            <AlertState state={data.state} />
          </Fact>
          <Fact name="Severity">{data.severity}</Fact>
          <Fact name="Subject">
            {data.subject === null ? (
              "the whole store"
            ) : href === null ? (
              <code>{data.subject}</code>
            ) : (
              <a href={href}>{data.subject}</a>
            )}
          </Fact>
          <Fact name="Since">
            <Time at={data.since} />
          </Fact>
          <Fact name="Fired">
            <Time at={data.startedAt} />
          </Fact>
          <Fact name="Ended">
            <Time at={data.endedAt} />
          </Fact>
          <Fact name="Acknowledged">
            {data.acknowledgedAt === null ? (
              "no"
            ) : (
              <>
                <Time at={data.acknowledgedAt} />
                {data.acknowledgedBy !== null && (
                  <>
                    {" "}
                    by <KeyName id={data.acknowledgedBy} />
                  </>
                )}
              </>
            )}
          </Fact>
          <Fact name="Told to">{data.channels.length === 0 ? "nobody" : data.channels.join(", ")}</Fact>
        </Facts>
      </Card>
      {isSilencing && (
        <SilenceForm
          rule={data.rule}
          subject={data.subject}
          onClose={() => setSilencing(false)}
          onSaved={reload}
        />
      )}
    </>
  )
}
