/** The state of an endpoint in words, with its circuit breaker and retry budget. */
import { duration, number, percent } from "../../format.ts"
import type { Resource } from "../../resource.ts"
import type { Endpoint, EndpointHealth } from "../../types.ts"
import { Badge, Button, Card, Fact, Facts, Failure, Skeleton, Time, type Tone } from "../../ui/basics.tsx"
import { HealthBadge, Why } from "../health.tsx"
import { act, type OfEndpoint } from "./context.ts"

interface StateProps {
  readonly of: OfEndpoint
  readonly health: Resource<EndpointHealth>
}

export function State({ of, health }: StateProps) {
  const { data, error, reload } = health
  return (
    <Card
      title="Health"
      aside={
        data?.since != null && (
          <>
            since <Time at={data.since} />
          </>
        )
      }
    >
      {error !== null && <Failure error={error} retry={reload} />}
      {data === null ? (
        error === null && <Skeleton lines={10} />
      ) : (
        <>
          <p class="lead">
            <HealthBadge health={data.health} /> <Why text={data.why} />.
          </p>
          <Facts>
            <Fact name="Circuit breaker">
              <Breaker of={of} />
            </Fact>
            <Fact name="Retry budget">
              <Budget budget={of.endpoint.budget} />
            </Fact>
            {of.endpoint.heldUntil !== null && (
              <Fact name="Held by Retry-After">
                ends <Time at={of.endpoint.heldUntil} />
              </Fact>
            )}
            {of.endpoint.pausedAt !== null && of.endpoint.paused && (
              <Fact name="Paused">
                <Time at={of.endpoint.pausedAt} />, until somebody resumes it
              </Fact>
            )}
            <Fact name="Failures in a row">{number(data.failures)}</Fact>
            <Fact name="Last success">
              {data.lastSuccessAt === null ? "none in 90 days" : <Time at={data.lastSuccessAt} />}
            </Fact>
            <Fact name="Last hour">
              <Window window={data.lastHour} />
            </Fact>
            <Fact name="Last 24 hours">
              <Window window={data.lastDay} />
            </Fact>
          </Facts>
        </>
      )}
    </Card>
  )
}

const BREAKERS: { readonly [S in Endpoint["breaker"]["state"]]: readonly [Tone, string] } = {
  closed: ["good", "closed"],
  open: ["bad", "open"],
  half_open: ["warn", "half-open: one probe decides"],
  ramping: ["info", "closed; the backlog goes out slowly"],
}

function Breaker({ of }: { readonly of: OfEndpoint }) {
  const { breaker, policy, budget, heldUntil } = of.endpoint
  const [tone, word] = BREAKERS[breaker.state]
  const own = (policy as { readonly breaker?: boolean | { readonly report?: boolean } }).breaker
  const isHeld = breaker.state !== "closed" || heldUntil !== null || (budget?.retriesAt ?? null) !== null
  const isOff = own === false || (typeof own === "object" && own.report === true)
  return (
    <div class="row">
      <span>
        <Badge tone={isOff ? "idle" : tone}>{isOff ? "off in its policy" : word}</Badge>
        {breaker.until !== null && (
          <>
            {" "}
            the next probe <Time at={breaker.until} />
          </>
        )}
      </span>
      {breaker.state === "closed" && !isOff && (
        <Button
          needs="ManageEndpoint"
          title="Nothing is sent for a while; then one request probes the endpoint"
          onClick={() => act(of, "/trip", "The circuit breaker is open.")}
        >
          Trip
        </Button>
      )}
      {isHeld && (
        <Button
          needs="ManageEndpoint"
          title="Closes the breaker, fills the retry budget, and ends a Retry-After"
          onClick={() =>
            act(of, "/reset", "The breaker is closed, the retry budget full, no Retry-After holds.")
          }
        >
          Reset
        </Button>
      )}
    </div>
  )
}

function Budget({ budget }: Pick<Endpoint, "budget">) {
  if (budget === null) return <Badge tone="idle">off in its policy</Badge>
  const { tokens, left, retriesAt } = budget
  if (retriesAt !== null)
    return (
      <>
        <Badge tone="warn">spent</Badge> the next retry <Time at={retriesAt} />
      </>
    )
  return (
    <>
      {number(left)} of {number(tokens)} tokens left
    </>
  )
}

function Window({ window }: { readonly window: EndpointHealth["lastHour"] }) {
  const { attempts, successRate, p95Ms } = window
  if (attempts === 0) return <span class="faint">no attempts</span>
  return (
    <>
      {percent(successRate! * attempts, attempts)} of {number(attempts)} succeeded
      {p95Ms !== null && <span class="faint"> · 95 % within {duration(p95Ms / 1000)}</span>}
    </>
  )
}
