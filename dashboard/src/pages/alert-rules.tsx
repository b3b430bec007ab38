/** The rules of alerts and their thresholds. */
import { useState } from "preact/hooks"
import { api, pathTo } from "../api.ts"
import { words } from "../format.ts"
import { AlertTabs } from "../parts/alert-tabs.tsx"
import { useResource } from "../resource.ts"
import type { AlertRule } from "../types.ts"
import { Badge, Button, Heading } from "../ui/basics.tsx"
import { ask, FormDialog } from "../ui/dialog.tsx"
import { CheckField, ChoiceField, numberOf, TextField, wordsOf } from "../ui/forms.tsx"
import { Loaded } from "../ui/loaded.tsx"
import { notify } from "../ui/notices.tsx"
import { Table } from "../ui/table.tsx"

const SEVERITIES = [
  ["info", "info"],
  ["warning", "warning"],
  ["critical", "critical"],
] as const

export function AlertRules() {
  const rules = useResource<{ readonly data: readonly AlertRule[] }>("/alert-rule")
  const [edited, setEdited] = useState<AlertRule | null>(null)
  const reset = ({ id }: AlertRule) =>
    ask({
      title: `Restore ${id}`,
      text: <p>All settings of the rule become the defaults.</p>,
      action: "Restore the defaults",
      async run() {
        await api.delete(pathTo("/alert-rule", id))
        notify("good", `${id} has its defaults again.`)
        rules.reload()
      },
    })
  return (
    <>
      <Heading title="Alert rules" />
      <AlertTabs />
      <Loaded of={rules} lines={10}>
        {({ data }) => (
          <Table
            label="Rules"
            rows={data}
            keyOf={({ id }) => id}
            columns={[
              {
                title: "Rule",
                cell: ({ id, about }) => (
                  <>
                    <strong>{id}</strong>
                    <p class="soft">{about}</p>
                  </>
                ),
              },
              {
                title: "State",
                cell: ({ enabled }) => (
                  <Badge tone={enabled ? "good" : "idle"}>{enabled ? "on" : "off"}</Badge>
                ),
              },
              { title: "Severity", minor: true, cell: ({ severity }) => severity },
              {
                title: "Thresholds",
                cell: ({ thresholds }) =>
                  Object.entries(thresholds).map(([name, value]) => (
                    <div key={name}>
                      {words(name)} {value}
                    </div>
                  )),
              },
              {
                title: "Channels",
                minor: true,
                cell: ({ channels }) => channels?.join(", ") ?? <span class="faint">all</span>,
              },
              {
                title: "Actions",
                cell: (rule) => (
                  <div class="row">
                    <Button needs="Change" onClick={() => setEdited(rule)}>
                      Edit
                    </Button>
                    {rule.isChanged && (
                      <Button needs="Change" onClick={() => reset(rule)}>
                        Defaults
                      </Button>
                    )}
                  </div>
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {edited !== null && <RuleForm rule={edited} onClose={() => setEdited(null)} onSaved={rules.reload} />}
    </>
  )
}

interface RuleFormProps {
  readonly rule: AlertRule
  readonly onClose: () => void
  readonly onSaved: () => void
}

function RuleForm({ rule, onClose, onSaved }: RuleFormProps) {
  const save = async (values: FormData) => {
    const thresholds = Object.fromEntries(
      Object.keys(rule.thresholds).map((name) => [name, numberOf(values, name, words(name))]),
    )
    const channels = wordsOf(values, "channels")
    await api.put(pathTo("/alert-rule", rule.id), {
      enabled: values.get("enabled") !== null,
      severity: values.get("severity"),
      channels: channels.length === 0 ? null : channels,
      ...thresholds,
    })
    notify("good", `${rule.id} is saved.`)
    onSaved()
  }
  return (
    <FormDialog title={`Edit ${rule.id}`} submit="Save" onClose={onClose} onSubmit={save}>
      <CheckField name="enabled" label="On" checked={rule.enabled} />
      <ChoiceField name="severity" label="Severity" value={rule.severity} choices={SEVERITIES} />
      {Object.entries(rule.thresholds).map(([name, value]) => (
        <TextField key={name} name={name} label={words(name)} type="number" value={value} required />
      ))}
      <TextField
        name="channels"
        label="Channels"
        value={rule.channels?.join(" ")}
        hint="Names of channels, separated by spaces. Empty: all."
      />
    </FormDialog>
  )
}
