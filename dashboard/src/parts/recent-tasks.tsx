/** The newest tasks: actions on many deliveries at once stay visible. */
import { toTask } from "../links.ts"
import { type List, type Resource, useResource } from "../resource.ts"
import type { Task } from "../types.ts"
import { Card, Failure, Skeleton, Time } from "../ui/basics.tsx"
import { Table } from "../ui/table.tsx"
import { StopTask, TaskProgress, TaskState, titleOfTask, useProgress, useStarters } from "./task-progress.tsx"

const SHOWN = 10

export function useRecentTasks(): Resource<List<Task>> {
  const tasks = useResource<List<Task>>("/task", { limit: SHOWN }, { live: true })
  useProgress(tasks, tasks.data?.data.some(({ status }) => status === "running") ?? false)
  return tasks
}

export function RecentTasks({ tasks }: { readonly tasks: Resource<List<Task>> }) {
  const { data, error, reload } = tasks
  const starterOf = useStarters(data?.data ?? [])
  if (data === null) return error === null ? <Skeleton /> : <Failure error={error} retry={reload} />
  if (data.data.length === 0) return null
  return (
    <Card title="Recent tasks" aside={`the newest ${SHOWN}`}>
      <Table
        label="Recent tasks"
        rows={data.data}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => toTask(id)}
        columns={[
          { title: "Task", cell: (task) => <a href={toTask(task.id)}>{titleOfTask(task)}</a> },
          { title: "State", cell: (task) => <TaskState task={task} /> },
          { title: "Progress", cell: (task) => <TaskProgress task={task} /> },
          { title: "Started by", minor: true, cell: (task) => starterOf(task)?.by.name ?? "–" },
          { title: "Last change", minor: true, cell: ({ updatedAt }) => <Time at={updatedAt} /> },
          {
            title: "Action",
            cell: ({ id, status }) => status === "running" && <StopTask id={id} reload={reload} />,
          },
        ]}
      />
    </Card>
  )
}
