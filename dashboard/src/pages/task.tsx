/** One task: its action, its progress, and the caller who started it. */
import { pathTo } from "../api.ts"
import { exactNumber, words } from "../format.ts"
import { toDeadLetters, toEndpoint } from "../links.ts"
import { Above, Detail } from "../parts/detail.tsx"
import {
  progressOf,
  StopTask,
  TaskProgress,
  TaskState,
  titleOfTask,
  useProgress,
  useStarters,
} from "../parts/task-progress.tsx"
import { useResource } from "../resource.ts"
import type { PageProps } from "../routed.tsx"
import type { Task } from "../types.ts"
import { Card, Fact, Facts, Heading, Id, Time } from "../ui/basics.tsx"

const LIST = { href: toDeadLetters(), title: "Dead letters and tasks" }

export function TaskPage({ params: { id = "" } }: PageProps) {
  const task = useResource<Task>(pathTo("/task", id), {}, { live: true })
  useProgress(task, task.data?.status === "running")
  return (
    <Detail of={task} what="task" why="Finished tasks are removed after a while." list={LIST}>
      {(data) => <Shown data={data} reload={task.reload} />}
    </Detail>
  )
}

function Shown({ data, reload }: { readonly data: Task; readonly reload: () => void }) {
  const starterOf = useStarters([data])
  const starter = starterOf(data)
  const { total: _total, done: _done, changed: _changed, cancelled: _cancelled, ...found } = progressOf(data)
  return (
    <>
      <Heading
        above={<Above list={LIST} />}
        title={
          <>
            {titleOfTask(data)} <TaskState task={data} />
          </>
        }
      >
        {data.status === "running" && <StopTask id={data.id} reload={reload} />}
      </Heading>
      <Card>
        <TaskProgress task={data} />
        <Facts>
          <Fact name="Task">
            <Id id={data.id} />
          </Fact>
          <Fact name="Last change">
            <Time at={data.updatedAt} />
          </Fact>
          {starter !== null && (
            <>
              <Fact name="Started by">{starter.by.name}</Fact>
              <Fact name="Started">
                <Time at={starter.at} />
              </Fact>
              {starter.appId !== null && starter.endpointId !== null && (
                <Fact name="Endpoint">
                  <Id id={starter.endpointId} href={toEndpoint(starter.appId, starter.endpointId)} />
                </Fact>
              )}
              {starter.detail !== null && <Fact name="Of">{starter.detail}</Fact>}
            </>
          )}
          {Object.entries(found).map(([name, value]) => (
            <Fact key={name} name={words(name)}>
              {typeof value === "number"
                ? exactNumber(value)
                : typeof value === "string"
                  ? value
                  : JSON.stringify(value)}
            </Fact>
          ))}
        </Facts>
      </Card>
    </>
  )
}
