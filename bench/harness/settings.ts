/** Settings of both sides of every comparison. */

/** Node's options in `npm start`, the image, the benchmark's script in `package.json`, and the programs that it starts. */
export const NODE_OPTIONS = ["--max-semi-space-size=16"]

/** Connections of the bare loop and of every client and peer, and the concurrency of an endpoint of Posthorn. */
export const CONNECTIONS = 64

/** Concurrent sends: enough that a commit has many. */
export const SENDERS = 256

/** The receiver is on this machine. */
export const EGRESS = { allow: ["127.0.0.0/8"] }
