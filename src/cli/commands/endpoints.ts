/** `posthorn endpoints`: endpoints. */

import type { EndpointOut } from "../../api/schemas/endpoint.ts"
import { countText } from "../../core/wording.ts"
import { path } from "../api.ts"
import { type Action, action, type Group, PAGE_FLAGS, YES_FLAG } from "../command.ts"
import { confirm } from "../confirm.ts"
import { off, on, text, texts } from "../flag.ts"
import { showList } from "../lists.ts"
import { fieldsFrom } from "../source.ts"
import { UsageError } from "../usage-error.ts"
import { enable } from "./endpoint-enable.ts"
import { ENDPOINT_COLUMNS, ENDPOINT_FIELDS, HEADER, showEndpoint } from "./endpoint-fields.ts"
import { HEALTH_FLAGS, health, showHealth } from "./endpoint-health.ts"
import { recover, replayMissing, test } from "./endpoint-replays.ts"
import { rotate, secret } from "./endpoint-secret.ts"
import { APP, ENDPOINT, requireChanges, waitingFor } from "./shared.ts"

const routeOf = ({ app, endpoint }: { readonly app: string; readonly endpoint: string }) =>
  path`/app/${app}/endpoint/${endpoint}`

function change(verb: "pause" | "resume" | "trip" | "reset", summary: string): Action {
  return action({
    summary,
    args: [APP, ENDPOINT],
    examples: [`posthorn endpoints ${verb} acme main`],
    async run({ api, out, args }) {
      showEndpoint(out, await api.post(`${routeOf(args)}/${verb}`))
    },
  })
}

export const command: Group = {
  summary: "endpoints: where webhooks go",
  bare: "list",
  actions: {
    list: action({
      summary:
        "list an application's endpoints, the newest first; with --health also those of all applications",
      args: [{ ...APP, optional: true }],
      flags: { ...PAGE_FLAGS, ...HEALTH_FLAGS },
      examples: [
        "posthorn endpoints list acme",
        "posthorn endpoints list acme --health",
        "posthorn endpoints --health",
        "posthorn endpoints --health --state failing",
      ],
      async run(run) {
        const { app } = run.args
        if (run.flags.health) return showHealth(run, app)
        if (run.flags.state !== undefined) throw new UsageError("--state needs --health")
        if (app === undefined) throw new UsageError("<app> is missing; without it, give --health")
        return showList(run, {
          route: path`/app/${app}/endpoint`,
          columns: ENDPOINT_COLUMNS,
          none: "The application has no endpoints.",
        })
      },
    }),
    get: action({
      summary: "show an endpoint",
      args: [APP, ENDPOINT],
      examples: ["posthorn endpoints get acme main"],
      async run({ api, out, args }) {
        showEndpoint(out, await api.get(routeOf(args)))
      },
    }),
    create: action({
      summary: "create an endpoint; posthorn endpoints secret shows what its receiver verifies with",
      args: [APP, { name: "url", about: "where requests go, http or https, or relay://NAME for an agent" }],
      flags: {
        ...ENDPOINT_FIELDS,
        header: HEADER,
        ordered: on("message N+1 is not sent before N is delivered or dead", { field: "ordered" }),
        disabled: on("gets nothing until it is enabled", { field: "disabled" }),
        secret: text("SECRET", "whsec_… or whsk_…, instead of one that is made", { field: "secret" }),
      },
      examples: [
        "posthorn endpoints create acme https://example.com/hooks --uid second",
        "posthorn endpoints create acme https://example.com/paid --type invoice.paid --header 'X-Team: billing'",
        `posthorn endpoints create acme https://example.com/slow --retry '{"delays": [60, 600], "maxAttempts": 3}'`,
      ],
      async run({ api, out, args, flags, fields }) {
        const body = {
          url: args.url,
          ...(await fieldsFrom(flags.from)),
          ...fields,
          ...(flags.header === undefined ? {} : { headers: flags.header }),
        }
        showEndpoint(out, await api.post(path`/app/${args.app}/endpoint`, body))
      },
    }),
    update: action({
      summary: "change an endpoint; what is not given stays",
      args: [APP, ENDPOINT],
      flags: {
        url: text("URL", "where requests go from the next attempt on", { field: "url" }),
        ...ENDPOINT_FIELDS,
        header: HEADER,
        "remove-header": texts("NAME", "takes a header away"),
        ordered: on("from now on one after the other", { field: "ordered" }),
        unordered: off("from now on in any order", { field: "ordered" }),
        disable: on("gets nothing new, and holds its waiting deliveries", { field: "disabled" }),
        enable: off("gets messages again, and its waiting deliveries are sent; see endpoints enable", {
          field: "disabled",
        }),
      },
      examples: [
        "posthorn endpoints update acme main --url https://example.com/new --rate-limit 20",
        "posthorn endpoints update acme main --enable --type= --header 'X-Team: billing'",
      ],
      async run({ api, out, args, flags, fields }) {
        const { header, "remove-header": removed } = flags
        const body = { ...(await fieldsFrom(flags.from)), ...fields }
        requireChanges({ ...body, ...header, ...(removed === undefined ? {} : { removed }) })
        const changed = await api.send<EndpointOut>("PATCH", routeOf(args), { body })
        if (header !== undefined || removed !== undefined)
          await api.send("PATCH", `${routeOf(args)}/headers`, {
            body: { headers: header ?? {}, deleteHeaders: removed ?? [] },
          })
        showEndpoint(out, changed)
      },
    }),
    delete: action({
      summary: "delete an endpoint; its waiting deliveries are cancelled",
      args: [APP, ENDPOINT],
      flags: YES_FLAG,
      examples: ["posthorn endpoints delete acme main --yes"],
      async run({ api, out, args, flags }) {
        await confirm(flags.yes, async () => {
          const { id, url } = await api.get<EndpointOut>(routeOf(args))
          const waiting = await waitingFor(api, args.app, id)
          const many = countText(waiting, "waiting delivery", "waiting deliveries")
          return `Endpoint ${id} (${url}) would be deleted, and ${many} cancelled.`
        })
        out.say(await api.send("DELETE", routeOf(args)), `Endpoint ${args.endpoint} is deleted.`)
      },
    }),
    pause: change("pause", "hold waiting and new deliveries; nothing is discarded"),
    resume: change("resume", "resume; also ends a Retry-After that the endpoint had asked for"),
    enable,
    trip: change("trip", "open the circuit breaker: nothing is sent for its open time, then one request"),
    reset: change(
      "reset",
      "close the circuit breaker; also fills the retry budget, and ends the ramp after an outage and a Retry-After",
    ),
    health,
    secret,
    rotate,
    test,
    recover,
    "replay-missing": replayMissing,
  },
}
