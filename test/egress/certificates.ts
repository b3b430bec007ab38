/** A certificate authority of the tests' own, made with openssl, and certificates of every kind that it can give out. */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { temporaryFolder } from "../support/harness.ts"
import { requireTool } from "../support/tools.ts"

export interface Certificate {
  readonly cert: string
  readonly key: string
}

export interface CertificateOptions {
  /** subjectAltName: `DNS:…` or `IP:…`. */
  readonly names: string
  readonly expired?: boolean
}

const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

export class Authority {
  readonly cert: string
  readonly #folder = temporaryFolder()
  readonly #openssl = requireTool("openssl")
  #made = 0

  constructor() {
    this.#run("req", "-x509", ...KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Authority")
    this.cert = this.#read("ca.pem")
  }

  certificate(commonName: string, { names, expired = false }: CertificateOptions): Certificate {
    const name = `made-${this.#made++}`
    writeFileSync(join(this.#folder, `${name}.ext`), `subjectAltName=${names}\n`)
    this.#run(
      "req",
      "-new",
      ...KEY,
      "-keyout",
      `${name}.key`,
      "-out",
      `${name}.csr`,
      "-subj",
      `/CN=${commonName}`,
    )
    const authority = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", `${name}.ext`]
    const days = ["-days", expired ? "-1" : "30"]
    this.#run("x509", "-req", "-in", `${name}.csr`, ...authority, ...days, "-out", `${name}.pem`)
    return { cert: this.#read(`${name}.pem`), key: this.#read(`${name}.key`) }
  }

  /** Signed by its own key and by nobody else. */
  selfSigned(commonName: string, names: string): Certificate {
    const name = `made-${this.#made++}`
    const files = ["-keyout", `${name}.key`, "-out", `${name}.pem`]
    this.#run(
      "req",
      "-x509",
      ...KEY,
      ...files,
      "-subj",
      `/CN=${commonName}`,
      "-addext",
      `subjectAltName=${names}`,
    )
    return { cert: this.#read(`${name}.pem`), key: this.#read(`${name}.key`) }
  }

  #run(...args: string[]): void {
    execFileSync(this.#openssl, args, { cwd: this.#folder, stdio: "pipe" })
  }

  #read(file: string): string {
    return readFileSync(join(this.#folder, file), "utf8")
  }
}
