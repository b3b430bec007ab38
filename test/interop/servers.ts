/** The servers of the interop run: how to find each one, and how to start it on loopback with the handler of `handlers/`. */
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { findTool } from "../support/tools.ts"

export const HANDLERS = fileURLToPath(new URL("handlers", import.meta.url))
/** Python packages, which `--install` puts into a virtual environment. */
export const VENV = join(homedir(), ".cache", "posthorn-interop", "venv")

/** Where a server runs. */
export interface Place {
  readonly port: number
  /** `127.0.0.1:port`, and `[::1]:port` on a machine with IPv6. */
  readonly addresses: readonly string[]
  readonly tlsPort: number
  /** Of the origin behind a proxy: the handler in Node. */
  readonly originPort: number
  readonly folder: string
  /** Certificate and key, and a file with both. */
  readonly cert: string
  readonly key: string
  readonly pem: string
}

export interface ServerKind {
  readonly name: string
  /** The program, and the Debian package or (with `pip`) the Python package that brings it. */
  readonly program: string
  readonly package: string
  readonly pip?: true
  /** The arguments that ask the program for its version. Python packages have none. */
  readonly version?: readonly string[]
  /** It forwards to an origin. */
  readonly isProxy?: true
  readonly arguments: (place: Place) => readonly string[]
  /** Files to write into the place's folder before the start. */
  readonly files?: (place: Place) => { readonly [name: string]: string }
  readonly environment?: { readonly [name: string]: string }
  /** After which time it closes an idle connection, as started here. Left out: it cannot be set. */
  readonly idleMs?: number
  /** It also listens on `tlsPort`, and on all `addresses`. */
  readonly tls?: true
  readonly ipv6?: true
  /** `/interim` sends a 1xx before the final response, and the proxy forwards it or drops it. */
  readonly interim?: true
}

/** Two seconds where the server announces its idle time: the client then stops a second earlier. */
const ANNOUNCED_IDLE_MS = 2000
const IDLE_MS = 1000

export const SERVERS: readonly ServerKind[] = [
  {
    ...{ name: "Node http", program: "node", package: "nodejs", version: ["--version"] },
    arguments: () => [join(HANDLERS, "node.ts")],
    ...{ idleMs: ANNOUNCED_IDLE_MS, tls: true, ipv6: true, interim: true },
  },
  {
    ...{ name: "Python http.server", program: "python3", package: "python3", version: ["--version"] },
    arguments: () => [join(HANDLERS, "http_server.py")],
    ...{ idleMs: IDLE_MS, interim: true },
  },
  {
    ...{ name: "Python http.server, HTTP/1.0", program: "python3", package: "python3" },
    version: ["--version"],
    arguments: () => [join(HANDLERS, "http_server.py")],
    ...{ environment: { HTTP10: "1" }, idleMs: IDLE_MS },
  },
  {
    ...{ name: "Go net/http", program: "go", package: "golang-go", version: ["version"] },
    arguments: () => ["run", join(HANDLERS, "main.go")],
    ...{ idleMs: IDLE_MS, tls: true, ipv6: true, interim: true },
  },
  {
    ...{ name: "Java HttpServer", program: "java", package: "default-jdk-headless", version: ["-version"] },
    arguments: () => [join(HANDLERS, "Server.java")],
  },
  {
    ...{ name: "uvicorn", program: "uvicorn", package: "uvicorn", pip: true },
    arguments: ({ port }) => [
      ...["--host", "127.0.0.1", "--port", `${port}`, "--timeout-keep-alive", `${IDLE_MS / 1000}`],
      ...["--log-level", "warning", "--app-dir", HANDLERS, "asgi:app"],
    ],
    idleMs: IDLE_MS,
  },
  {
    ...{ name: "hypercorn", program: "hypercorn", package: "hypercorn", pip: true },
    arguments: ({ addresses, tlsPort, cert, key }) => [
      ...addresses.flatMap((address) => ["--insecure-bind", address]),
      ...["--bind", `127.0.0.1:${tlsPort}`, "--certfile", cert, "--keyfile", key],
      ...["--keep-alive", `${IDLE_MS / 1000}`, "--log-level", "warning", "asgi:app"],
    ],
    ...{ idleMs: IDLE_MS, tls: true, ipv6: true },
  },
  {
    ...{ name: "gunicorn, threads", program: "gunicorn", package: "gunicorn", pip: true },
    arguments: ({ addresses }) => [
      ...addresses.flatMap((address) => ["-b", address]),
      ...["-k", "gthread", "--threads", "32"],
      ...["--keep-alive", `${IDLE_MS / 1000}`, "--log-level", "error", "--no-control-socket", "wsgi:app"],
    ],
    ...{ idleMs: IDLE_MS, ipv6: true },
  },
  {
    ...{ name: "gunicorn, sync", program: "gunicorn", package: "gunicorn", pip: true },
    arguments: ({ port }) => [
      ...["-b", `127.0.0.1:${port}`, "-w", "2", "--log-level", "error", "--no-control-socket", "wsgi:app"],
    ],
  },
  {
    ...{ name: "waitress", program: "waitress-serve", package: "waitress", pip: true },
    arguments: ({ port }) => [
      ...[`--listen=127.0.0.1:${port}`, `--channel-timeout=${IDLE_MS / 1000}`, "--cleanup-interval=1"],
      "wsgi:app",
    ],
    idleMs: IDLE_MS,
  },
  {
    ...{ name: "PHP built-in", program: "php", package: "php-cli", version: ["--version"] },
    arguments: ({ port }) => ["-q", "-S", `127.0.0.1:${port}`, join(HANDLERS, "router.php")],
    environment: { PHP_CLI_SERVER_WORKERS: "4" },
  },
  {
    ...{ name: "Ruby WEBrick", program: "ruby", package: "ruby-webrick", version: ["--version"] },
    arguments: () => [join(HANDLERS, "webrick.rb")],
    idleMs: IDLE_MS,
  },
  {
    ...{ name: "Puma", program: "puma", package: "puma", version: ["--version"] },
    files: () => ({ "puma.rb": `persistent_timeout ${IDLE_MS / 1000}\n` }),
    arguments: ({ addresses, folder }) => [
      ...addresses.flatMap((address) => ["-b", `tcp://${address}`]),
      ...["-C", join(folder, "puma.rb")],
      join(HANDLERS, "config.ru"),
    ],
    ...{ idleMs: IDLE_MS, ipv6: true },
  },
  {
    ...{ name: "Starman", program: "starman", package: "starman", version: ["--version"] },
    arguments: ({ port }) => [
      ...["--listen", `127.0.0.1:${port}`, "--workers", "24", "--keepalive-timeout", `${IDLE_MS / 1000}`],
      join(HANDLERS, "app.psgi"),
    ],
    idleMs: IDLE_MS,
  },
  {
    ...{ name: "nginx", program: "nginx", package: "nginx-light", version: ["-v"], isProxy: true },
    files: ({ addresses, tlsPort, originPort, folder, cert, key }) => ({
      "nginx.conf": `daemon off; user root; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http {
  access_log off; keepalive_timeout ${IDLE_MS}ms;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  server {
    ${addresses.map((address) => `listen ${address};`).join(" ")} listen 127.0.0.1:${tlsPort} ssl;
    ssl_certificate ${cert}; ssl_certificate_key ${key};
    location / { proxy_pass http://127.0.0.1:${originPort}; }
  }
}
`,
    }),
    arguments: ({ folder }) => ["-e", `${folder}/error.log`, "-c", `${folder}/nginx.conf`],
    ...{ idleMs: IDLE_MS, tls: true, ipv6: true, interim: true },
  },
  {
    ...{ name: "Apache httpd", program: "apache2", package: "apache2", version: ["-v"], isProxy: true },
    files: ({ addresses, tlsPort, originPort, folder, cert, key }) => ({
      "apache.conf": `${["mpm_event", "authz_core", "proxy", "proxy_http", "socache_shmcb", "ssl"]
        .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
        .join("\n")}
ServerRoot ${folder}
ServerName localhost
User www-data
Group www-data
PidFile ${folder}/pid
ErrorLog ${folder}/error.log
DefaultRuntimeDir ${folder}
${addresses.map((address) => `Listen ${address}`).join("\n")}
Listen 127.0.0.1:${tlsPort}
KeepAliveTimeout ${ANNOUNCED_IDLE_MS / 1000}
ProxyPass / http://127.0.0.1:${originPort}/
<VirtualHost 127.0.0.1:${tlsPort}>
  SSLEngine on
  SSLCertificateFile ${cert}
  SSLCertificateKeyFile ${key}
  ProxyPass / http://127.0.0.1:${originPort}/
</VirtualHost>
`,
    }),
    arguments: ({ folder }) => ["-D", "FOREGROUND", "-f", `${folder}/apache.conf`],
    ...{ idleMs: ANNOUNCED_IDLE_MS, tls: true, ipv6: true, interim: true },
  },
  {
    ...{ name: "Caddy", program: "caddy", package: "caddy", version: ["version"], isProxy: true },
    files: ({ port, addresses, tlsPort, originPort, cert, key }) => ({
      Caddyfile: `{
  admin off
  auto_https off
  servers {
    timeouts {
      idle ${IDLE_MS}ms
    }
  }
}
http://:${port} {
  bind 127.0.0.1 ${addresses.length > 1 ? "::1" : ""}
  reverse_proxy 127.0.0.1:${originPort}
}
https://127.0.0.1:${tlsPort} {
  bind 127.0.0.1
  tls ${cert} ${key}
  reverse_proxy 127.0.0.1:${originPort}
}
`,
    }),
    arguments: ({ folder }) => ["run", "--adapter", "caddyfile", "--config", `${folder}/Caddyfile`],
    ...{ idleMs: IDLE_MS, tls: true, ipv6: true, interim: true },
  },
  {
    ...{ name: "HAProxy", program: "haproxy", package: "haproxy", version: ["-v"], isProxy: true },
    files: ({ addresses, tlsPort, originPort, pem }) => ({
      "haproxy.cfg": `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout http-keep-alive ${IDLE_MS}ms
frontend in
${addresses.map((address) => `  bind ${address}`).join("\n")}
  bind 127.0.0.1:${tlsPort} ssl crt ${pem}
  default_backend origin
backend origin
  server node 127.0.0.1:${originPort}
`,
    }),
    arguments: ({ folder }) => ["-db", "-f", `${folder}/haproxy.cfg`],
    ...{ idleMs: IDLE_MS, tls: true, ipv6: true, interim: true },
  },
  {
    ...{ name: "lighttpd", program: "lighttpd", package: "lighttpd", version: ["-v"], isProxy: true },
    files: ({ port, originPort, folder }) => ({
      "lighttpd.conf": `server.modules = ("mod_proxy")
server.document-root = "${folder}"
server.errorlog = "${folder}/error.log"
server.upload-dirs = ("${folder}")
server.bind = "127.0.0.1"
server.port = ${port}
server.max-keep-alive-idle = ${IDLE_MS / 1000}
proxy.server = ("" => (("host" => "127.0.0.1", "port" => ${originPort})))
`,
    }),
    arguments: ({ folder }) => ["-D", "-f", `${folder}/lighttpd.conf`],
    ...{ idleMs: IDLE_MS, interim: true },
  },
  {
    ...{ name: "Varnish", program: "varnishd", package: "varnish", version: ["-V"], isProxy: true },
    arguments: ({ addresses, originPort, folder }) => [
      ...["-F", "-j", "none", "-n", `${folder}/varnish`, "-p", `timeout_idle=${IDLE_MS / 1000}`],
      ...[...addresses.flatMap((address) => ["-a", address]), "-b", `127.0.0.1:${originPort}`],
    ],
    ...{ idleMs: IDLE_MS, ipv6: true },
  },
]

/** The program's path, or null if it is not on this machine. */
export function findServer({ program, pip }: ServerKind): string | null {
  if (program === "node") return process.execPath
  const inVenv = join(VENV, "bin", program)
  return pip && existsSync(inVenv) ? inVenv : findTool(program)
}
