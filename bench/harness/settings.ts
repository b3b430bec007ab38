/** What is the same on both sides of every comparison. */

/** Of Node, as `npm start` and the image run it: of the benchmark itself, in `package.json`, and of the programs that it starts. */
export const NODE_OPTIONS = ["--max-semi-space-size=16"]

/** Connections of the bare loop and of every client and worker that is compared with it; requests at once to one endpoint of Posthorn. */
export const CONNECTIONS = 64

/** Sends under way at once: enough that a commit carries many. */
export const SENDERS = 256

/** The receiver is on this machine. */
export const EGRESS = { allow: ["127.0.0.0/8"] }
