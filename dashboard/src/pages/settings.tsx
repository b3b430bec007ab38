/** The settings in force, and where each comes from. */

import { useResource } from "../resource.ts"
import { Badge, Heading, type Tone } from "../ui/basics.tsx"
import { Loaded } from "../ui/loaded.tsx"
import { Table } from "../ui/table.tsx"

interface Setting {
  readonly name: string
  readonly value: unknown
  readonly source: "default" | "file" | "environment" | "flag"
  readonly description: string
}

const SOURCES: { readonly [S in Setting["source"]]: readonly [Tone, string] } = {
  default: ["idle", "default"],
  file: ["info", "configuration file"],
  environment: ["info", "environment"],
  flag: ["info", "command line"],
}

export function Settings() {
  const settings = useResource<{ readonly data: readonly Setting[] }>("/setting")
  return (
    <>
      <Heading title="Settings" />
      <p class="soft">
        What the server that answers you runs with. Change settings in its configuration file, its environment
        or its command, and start it again.
      </p>
      <Loaded of={settings} lines={10}>
        {({ data }) => (
          <Table
            label="Settings"
            rows={data}
            keyOf={({ name }) => name}
            columns={[
              { title: "Name", cell: ({ name }) => <code>{name}</code> },
              { title: "Value", cell: ({ value }) => <Value of={value} /> },
              {
                title: "From",
                cell: ({ source }) => <Badge tone={SOURCES[source][0]}>{SOURCES[source][1]}</Badge>,
              },
              { title: "Meaning", minor: true, cell: ({ description }) => description },
            ]}
          />
        )}
      </Loaded>
    </>
  )
}

function Value({ of: value }: { readonly of: unknown }) {
  if (value === null || value === undefined || value === "") return <span class="faint">none</span>
  return <code>{typeof value === "string" ? value : JSON.stringify(value)}</code>
}
