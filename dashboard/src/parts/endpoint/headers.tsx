/** The headers that every request of an endpoint has. */
import { useState } from "preact/hooks"
import { api } from "../../api.ts"
import { refreshNow } from "../../refresh.ts"
import { useResource } from "../../resource.ts"
import { may } from "../../session.ts"
import { Button, Card, Failure, Skeleton } from "../../ui/basics.tsx"
import { ask, FormDialog } from "../../ui/dialog.tsx"
import { TextField, textOf } from "../../ui/forms.tsx"
import { notify } from "../../ui/notices.tsx"
import { type Column, Table } from "../../ui/table.tsx"
import { type OfEndpoint, pathOf } from "./context.ts"

interface HeadersOut {
  readonly headers: { readonly [name: string]: string }
  /** They are set, and their values are not shown. */
  readonly sensitive: readonly string[]
}
interface Header {
  readonly name: string
  readonly value: string | null
}

export function Headers({ of }: { readonly of: OfEndpoint }) {
  const { data, error, reload } = useResource<HeadersOut>(pathOf(of, "/headers"))
  const [isAdding, setAdding] = useState(false)
  const change = async (name: string, value: string | null) => {
    await api.patch(pathOf(of, "/headers"), { headers: { [name]: value } })
    notify("good", value === null ? `The header ${name} is removed.` : `The header ${name} is set.`)
    reload()
    refreshNow()
  }
  const remove = (name: string) =>
    ask({
      title: `Remove the header ${name}?`,
      text: <p>Requests are sent without it from the next attempt.</p>,
      action: "Remove",
      kind: "danger",
      run: () => change(name, null),
    })
  const columns: readonly Column<Header>[] = [
    { title: "Name", cell: ({ name }) => <code>{name}</code> },
    {
      title: "Value",
      cell: ({ value }) => (value === null ? <span class="faint">not shown</span> : <code>{value}</code>),
    },
    ...(may("ManageEndpoint")
      ? [
          {
            title: "Action",
            align: "right" as const,
            cell: ({ name }: Header) => <Button onClick={() => remove(name)}>Remove</Button>,
          },
        ]
      : []),
  ]
  const rows = data === null ? [] : rowsOf(data)
  return (
    <Card title="Headers">
      {error !== null && <Failure error={error} retry={reload} />}
      {data === null ? (
        error === null && <Skeleton lines={2} />
      ) : rows.length === 0 ? (
        <p class="soft">Requests have no headers of your own.</p>
      ) : (
        <Table label="Headers" rows={rows} keyOf={({ name }) => name} columns={columns} />
      )}
      <Button needs="ManageEndpoint" onClick={() => setAdding(true)}>
        Set a header
      </Button>
      {isAdding && (
        <FormDialog
          title="Set a header"
          submit="Set"
          onSubmit={(values) => change(textOf(values, "name") ?? "", textOf(values, "value") ?? "")}
          onClose={() => setAdding(false)}
        >
          <TextField name="name" label="Name" required placeholder="x-team" />
          <TextField
            name="value"
            label="Value"
            required
            hint="Values of headers that look like credentials by their name are not shown again."
          />
        </FormDialog>
      )}
    </Card>
  )
}

function rowsOf({ headers, sensitive }: HeadersOut): readonly Header[] {
  const shown = Object.entries(headers).map(([name, value]) => ({ name, value }))
  return [...shown, ...sensitive.map((name) => ({ name, value: null }))]
}
