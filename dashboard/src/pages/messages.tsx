/** The messages of an application, and a form that sends one. */
import { useState } from "preact/hooks"
import { toMessages } from "../links.ts"
import { MessageList } from "../parts/message-list.tsx"
import { SendMessage } from "../parts/send-message.tsx"
import { type List, useResource } from "../resource.ts"
import { filterOf } from "../router.ts"
import type { Application } from "../types.ts"
import { Button, Empty, Failure, Heading, Skeleton } from "../ui/basics.tsx"
import { ApplicationFilter } from "../ui/forms.tsx"
import { Table } from "../ui/table.tsx"

export function Messages() {
  const appId = filterOf("app_id")
  const [isSending, setSending] = useState(false)
  if (appId === null) return <ChooseApplication />
  return (
    <>
      <Heading title="Messages">
        <Button needs="Change" kind="primary" onClick={() => setSending(true)}>
          Send a message
        </Button>
      </Heading>
      {isSending && <SendMessage appId={appId} onClose={() => setSending(false)} />}
      <MessageList
        key={appId}
        appId={appId}
        filter={<ApplicationFilter />}
        empty={
          <Empty title="No messages yet.">
            <p>The application’s messages appear here as soon as your program sends one.</p>
            <Button needs="Change" onClick={() => setSending(true)}>
              Send a message
            </Button>
          </Empty>
        }
      />
    </>
  )
}

/** Messages are listed by application. */
function ChooseApplication() {
  const { data, error, reload } = useResource<List<Application>>("/app", { limit: 50, order: "descending" })
  return (
    <>
      <Heading title="Messages" />
      <search class="filters" aria-label="Filters">
        <ApplicationFilter placeholder="id or uid" />
      </search>
      {data === null && (error === null ? <Skeleton lines={6} /> : <Failure error={error} retry={reload} />)}
      {data?.data.length === 0 && (
        <Empty title="No applications yet.">
          <p>Messages belong to an application: a customer of your program.</p>
          <a class="button" href="/applications">
            Applications
          </a>
        </Empty>
      )}
      {data !== null && data.data.length > 0 && (
        <>
          <p>
            Choose the application whose messages you want to see.{!data.done && " These are the newest 50."}
          </p>
          <Table
            label="Applications"
            rows={data.data}
            columns={[
              {
                title: "Application",
                cell: ({ id, name }) => <a href={toMessages({ app_id: id })}>{name}</a>,
              },
              { title: "Uid", cell: ({ uid }) => uid ?? "" },
            ]}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => toMessages({ app_id: id })}
          />
        </>
      )}
    </>
  )
}
