/** A private Prometheus: scrapes the targets of one test and answers queries. It ends with the test. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { stringify } from "yaml"
import { requireTool } from "../tools.ts"
import { Home } from "./home.ts"
import { freePort } from "./port.ts"
import { ServerProcess } from "./server-process.ts"

export interface Sample {
  readonly metric: { readonly [label: string]: string }
  readonly value: number
}

export class PrometheusServer {
  readonly #url: string

  private constructor(url: string) {
    this.#url = url
  }

  /** `config` is the content of a prometheus.yml. */
  static async start(config: object): Promise<PrometheusServer> {
    const program = requireTool("prometheus")
    const home = await Home.create({ uid: process.getuid!(), gid: process.getgid!() })
    const file = join(home.folder, "prometheus.yml")
    writeFileSync(file, stringify(config))
    const address = `127.0.0.1:${await freePort()}`
    const server = new PrometheusServer(`http://${address}`)
    const args = [`--config.file=${file}`, `--storage.tsdb.path=${home.dataFolder}`, "--log.level=warn"]
    const running = new ServerProcess(home, program, [...args, `--web.listen-address=${address}`], () =>
      server.#get("/-/ready").then(() => {}),
    )
    onTestFinished(() => running.close())
    await running.start()
    return server
  }

  /** The samples of an instant vector, or the one of a scalar. */
  async query(expr: string): Promise<Sample[]> {
    const response = await this.#get(`/api/v1/query?query=${encodeURIComponent(expr)}`)
    const { data } = (await response.json()) as {
      data: { resultType: string; result: { metric: Sample["metric"]; value: [number, string] }[] }
    }
    if (data.resultType !== "vector") throw new Error(`${expr} is a ${data.resultType}, not a vector`)
    return data.result.map(({ metric, value: [, text] }) => ({
      metric,
      value: Number(text.replace("Inf", "Infinity")),
    }))
  }

  /** Every rule with the health of its last evaluation. */
  async rules(): Promise<{ name: string; health: string; lastError?: string }[]> {
    const response = await this.#get("/api/v1/rules")
    const { data } = (await response.json()) as {
      data: { groups: { rules: { name: string; health: string; lastError?: string }[] }[] }
    }
    return data.groups.flatMap(({ rules }) => rules)
  }

  async #get(path: string): Promise<Response> {
    const response = await fetch(this.#url + path)
    if (!response.ok) throw new Error(`${path} of Prometheus: ${response.status} ${await response.text()}`)
    return response
  }
}
