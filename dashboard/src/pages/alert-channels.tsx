/** Channels: who is told of alerts, and how. */
import { useState } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import { AlertTabs } from "../parts/alert-tabs.tsx"
import { ChannelForm } from "../parts/channel-form.tsx"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import type { AlertChannel } from "../types.ts"
import { Button, Empty, Heading, Time } from "../ui/basics.tsx"
import { ask } from "../ui/dialog.tsx"
import { notify } from "../ui/notices.tsx"
import { ListView } from "../ui/table.tsx"

interface Tested {
  readonly delivered: boolean
  readonly detail: string
}

export function AlertChannels() {
  const [isCreating, setCreating] = useState(false)
  const list = useResource<List<AlertChannel>>(
    "/alert-channel",
    { limit: 50, iterator: filterOf("iterator") },
    { live: true },
  )
  const test = async ({ name }: AlertChannel) => {
    const { delivered, detail } = await api.post<Tested>(pathTo("/alert-channel", name, "/test"))
    notify(delivered ? "good" : "bad", `${name}: ${detail}`)
  }
  const remove = ({ name }: AlertChannel) =>
    ask({
      title: `Delete ${name}`,
      text: <p>Nobody is told of alerts through it any more.</p>,
      action: "Delete the channel",
      kind: "danger",
      async run() {
        await api.delete(pathTo("/alert-channel", name))
        notify("good", `The channel ${name} is deleted.`)
        list.reload()
      },
    })
  const create = (
    <Button kind="primary" needs="Change" onClick={() => setCreating(true)}>
      New channel
    </Button>
  )
  return (
    <>
      <Heading title="Alert channels">{create}</Heading>
      <AlertTabs />
      <ListView
        list={list}
        label="Channels"
        keyOf={({ name }) => name}
        columns={[
          { title: "Name", cell: ({ name }) => name },
          { title: "Kind", cell: ({ kind }) => kind ?? <span class="faint">unknown</span> },
          { title: "Leads to", cell: ({ target }) => <span class="url">{target}</span> },
          {
            title: "Dead letters",
            minor: true,
            cell: ({ deadLetters }) => (deadLetters ? "notices, too" : "alerts only"),
          },
          { title: "Changed", minor: true, cell: ({ updatedAt }) => <Time at={updatedAt} /> },
          {
            title: "Actions",
            cell: (channel) => (
              <div class="row">
                <Button
                  needs="Change"
                  onClick={() => test(channel)}
                  title={`Send a test through ${channel.name}`}
                >
                  Test
                </Button>
                <Button
                  needs="Change"
                  kind="danger"
                  onClick={() => remove(channel)}
                  title={`Delete ${channel.name}`}
                >
                  Delete
                </Button>
              </div>
            ),
          },
        ]}
        empty={
          <Empty title="No channels: nobody is told of alerts">
            <p>Add Slack, PagerDuty, mail or a webhook of your own.</p>
            {create}
          </Empty>
        }
      />
      {isCreating && <ChannelForm onClose={() => setCreating(false)} onSaved={list.reload} />}
    </>
  )
}
