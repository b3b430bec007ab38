/** Silences: rules that notify nobody for a while. */
import { useState } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import { AlertTabs } from "../parts/alert-tabs.tsx"
import { KeyName } from "../parts/key-name.tsx"
import { SilenceForm } from "../parts/silence-form.tsx"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import type { Silence } from "../types.ts"
import { Button, Empty, Heading, Time } from "../ui/basics.tsx"
import { notify } from "../ui/notices.tsx"
import { ListView } from "../ui/table.tsx"

export function AlertSilences() {
  const [isCreating, setCreating] = useState(false)
  const list = useResource<List<Silence>>(
    "/alert-silence",
    { limit: 50, order: "descending", iterator: filterOf("iterator") },
    { live: true },
  )
  const end = async ({ id }: Silence) => {
    await api.delete(pathTo("/alert-silence", id))
    notify("good", "The silence has ended.")
    list.reload()
  }
  const create = (
    <Button kind="primary" needs="Change" onClick={() => setCreating(true)}>
      New silence
    </Button>
  )
  return (
    <>
      <Heading title="Silences">{create}</Heading>
      <AlertTabs />
      <ListView
        list={list}
        label="Silences"
        keyOf={({ id }) => id}
        columns={[
          { title: "Rule", cell: ({ rule }) => rule },
          { title: "Subject", cell: ({ subject }) => (subject === null ? "all" : <code>{subject}</code>) },
          { title: "Ends", cell: ({ until }) => <Time at={until} /> },
          { title: "Reason", minor: true, cell: ({ reason }) => reason },
          {
            title: "By",
            minor: true,
            cell: ({ createdBy }) => <KeyName id={createdBy} />,
          },
          {
            title: "Actions",
            cell: (silence) => (
              <Button needs="Change" onClick={() => end(silence)}>
                End now
              </Button>
            ),
          },
        ]}
        empty={
          <Empty title="No silences">
            <p>During planned work a silence keeps a rule from notifying anybody.</p>
            {create}
          </Empty>
        }
      />
      {isCreating && <SilenceForm onClose={() => setCreating(false)} onSaved={list.reload} />}
    </>
  )
}
