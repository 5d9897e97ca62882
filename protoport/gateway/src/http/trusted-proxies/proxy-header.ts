import { isIP } from "node:net";
import type { Peer } from "../exchange/index.ts";
import { maxPort, toIpAddress } from "./ip-address.ts";

/**
 * The result of reading a PROXY header with the length `bytes`. "more" means that more bytes are needed. `source` is
 * the peer that connected to the proxy, or `undefined` if the proxy opened the connection itself, as for a probe.
 */
type ProxyHeader =
  | { readonly kind: "more" }
  | { readonly kind: "malformed" }
  | { readonly kind: "header"; readonly bytes: number; readonly source: Peer | undefined };

const needsMoreBytes: ProxyHeader = { kind: "more" };
const malformedHeader: ProxyHeader = { kind: "malformed" };

/** Maximum number of bytes in a version 1 header with its line break (proxy-protocol.txt §2.1). */
const maxTextBytes = 107;
/** Maximum bytes in a version 2 header's addresses and TLVs: eight times the minimum (§2.2), for certificate names. */
const maxBinaryBytes = 4096;

const signature = Buffer.from("\r\n\r\n\0\r\nQUIT\n");
const binaryHeadBytes = signature.byteLength + 4;

/** Reads the PROXY header at the start of a connection. Version 1 is a text line, and version 2 is binary. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const length = Math.min(bytes.byteLength, signature.byteLength);
  if (signature.compare(bytes, 0, length, 0, length) === 0) return readBinary(bytes);
  return readTextHeader(bytes);
}

const textStart = Buffer.from("PROXY ");

// §2.1: PROXY TCP4|TCP6 source destination source-port destination-port, or PROXY UNKNOWN followed by anything.
const textLine =
  /^PROXY (?:UNKNOWN(?: .*)?|TCP([46]) ([0-9A-Fa-f:.]+) ([0-9A-Fa-f:.]+) (0|[1-9]\d{0,4}) (0|[1-9]\d{0,4}))$/;

function readTextHeader(bytes: Buffer): ProxyHeader {
  const length = Math.min(bytes.byteLength, textStart.byteLength);
  if (textStart.compare(bytes, 0, length, 0, length) !== 0) return malformedHeader;
  const line = bytes.subarray(0, maxTextBytes).indexOf("\r\n");
  if (line === -1) return bytes.byteLength < maxTextBytes ? needsMoreBytes : malformedHeader;
  const match = textLine.exec(bytes.toString("latin1", 0, line));
  if (match === null) return malformedHeader;
  const [, family, from = "", to = "", port = "", toPort = ""] = match;
  if (family === undefined) return { kind: "header", bytes: line + 2, source: undefined };
  if (isIP(from) !== Number(family) || isIP(to) !== Number(family) || Number(toPort) > maxPort) return malformedHeader;
  return toHeader(line + 2, from, Number(port));
}

// The upper four bits contain version 2, and the lower four bits the command (§2.2).
const localCommand = 0x20;
const proxiedCommand = 0x21;
const tcpOverIpv4 = 0x11;
const tcpOverIpv6 = 0x21;

/** Reads version 2 (§2.2): signature, version and command, family and protocol, length, addresses. TLVs are skipped. */
function readBinary(bytes: Buffer): ProxyHeader {
  if (bytes.byteLength < binaryHeadBytes) return needsMoreBytes;
  const command = bytes.readUInt8(signature.byteLength);
  const family = bytes.readUInt8(signature.byteLength + 1);
  const length = bytes.readUInt16BE(signature.byteLength + 2);
  const end = binaryHeadBytes + length;
  if ((command !== localCommand && command !== proxiedCommand) || length > maxBinaryBytes) return malformedHeader;
  if (bytes.byteLength < end) return needsMoreBytes;
  const withoutSource: ProxyHeader = { kind: "header", bytes: end, source: undefined };
  // §2.2: addresses are ignored if the command is LOCAL or the address family is unknown.
  if (command === localCommand) return withoutSource;
  const addresses = bytes.subarray(binaryHeadBytes, end);
  if (family === tcpOverIpv4) {
    if (length < 12) return malformedHeader;
    return toHeader(end, [...addresses.subarray(0, 4)].join("."), addresses.readUInt16BE(8));
  }
  if (family === tcpOverIpv6) {
    if (length < 36) return malformedHeader;
    return toHeader(end, groupsOf(addresses.subarray(0, 16)), addresses.readUInt16BE(32));
  }
  return withoutSource;
}

function groupsOf(address: Buffer): string {
  return Array.from({ length: 8 }, (_, group) => address.readUInt16BE(group * 2).toString(16)).join(":");
}

function toHeader(bytes: number, text: string, port: number): ProxyHeader {
  const address = toIpAddress(text);
  return address === undefined || port > maxPort
    ? malformedHeader
    : { kind: "header", bytes, source: { address, port } };
}
