/** DNS messages as bytes, as much of RFC 1035 as a test's server needs: questions are read, answers are written. */

export const TYPES = { A: 1, CNAME: 5, AAAA: 28 } as const
export const RCODES = { ok: 0, servfail: 2, nxdomain: 3, refused: 5 } as const
const OPT = 41
const CLASS_IN = 1
const HEADER_BYTES = 12
const PLAIN_UDP_BYTES = 512

export interface Question {
  readonly id: number
  /** In lower case, without the dot at its end. */
  readonly name: string
  readonly type: number
  /** As they came; an answer repeats them. */
  readonly bytes: Buffer
  /** The longest answer that the asker takes in one datagram. */
  readonly udpBytes: number
}

export interface DnsRecord {
  readonly name: string
  readonly type: keyof typeof TYPES
  /** An address, or for a CNAME the name that it leads to. */
  readonly data: string
  readonly ttl: number
}

export interface Reply {
  readonly rcode: keyof typeof RCODES
  readonly records: readonly DnsRecord[]
}

export function readQuestion(message: Buffer): Question {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = message[at++]!; length > 0; length = message[at++]!) {
    labels.push(message.toString("latin1", at, at + length))
    at += length
  }
  const end = at + 4
  // The one other record that c-ares sends is OPT (EDNS): no name, its type, and in the place of the class the size.
  const hasOpt = message.length >= end + 5 && message.readUInt16BE(end + 1) === OPT
  return {
    id: message.readUInt16BE(0),
    name: labels.join(".").toLowerCase(),
    type: message.readUInt16BE(at),
    bytes: message.subarray(HEADER_BYTES, end),
    udpBytes: hasOpt ? message.readUInt16BE(end + 3) : PLAIN_UDP_BYTES,
  }
}

export function writeReply(question: Question, { rcode, records }: Reply, truncated = false): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(question.id, 0)
  // A response; recursion was desired and is available.
  header.writeUInt16BE(0x8180 | (truncated ? 0x0200 : 0) | RCODES[rcode], 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(truncated ? 0 : records.length, 6)
  return Buffer.concat([header, question.bytes, ...(truncated ? [] : records.map(writeRecord))])
}

function writeRecord({ name, type, data, ttl }: DnsRecord): Buffer {
  const content = { A: writeIpv4, AAAA: writeIpv6, CNAME: writeName }[type](data)
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(TYPES[type], 0)
  fixed.writeUInt16BE(CLASS_IN, 2)
  fixed.writeUInt32BE(ttl, 4)
  fixed.writeUInt16BE(content.length, 8)
  return Buffer.concat([writeName(name), fixed, content])
}

function writeName(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.from(label, "latin1"))
  return Buffer.concat([...labels.flatMap((label) => [Buffer.from([label.length]), label]), Buffer.from([0])])
}

function writeIpv4(address: string): Buffer {
  return Buffer.from(address.split(".").map(Number))
}

function writeIpv6(address: string): Buffer {
  // The URL parser writes every spelling, IPv4 at the end included, as groups of hex digits.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::")
  const groups = (text: string) => (text === "" ? [] : text.split(":"))
  const first = groups(head)
  const last = tail === undefined ? [] : groups(tail)
  const zeros = new Array<string>(8 - first.length - last.length).fill("0")
  return Buffer.from([...first, ...zeros, ...last].map((group) => group.padStart(4, "0")).join(""), "hex")
}
