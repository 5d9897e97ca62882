import { describe, expect, test } from "vitest";
import { readProxyHeader } from "../../../src/http/trusted-proxies/index.ts";
import { binaryHeader, ipv4Addresses, ipv6Addresses } from "../../../../testing/src/gateway/proxy-header.ts";

const ipv4 = { address: "203.0.113.7", port: 47 };
const ipv6 = { address: "2001:db8::7", port: 47 };
const rest = Buffer.from("GET / HTTP/1.1\r\n");

// oxfmt-ignore
const good: readonly { name: string; bytes: Buffer; source: object | undefined }[] = [
  { name: "TCP4", bytes: Buffer.from("PROXY TCP4 203.0.113.7 192.0.2.9 47 443\r\n"), source: ipv4 },
  { name: "TCP6", bytes: Buffer.from("PROXY TCP6 2001:db8::7 2001:db8::9 47 443\r\n"), source: ipv6 },
  { name: "UNKNOWN", bytes: Buffer.from("PROXY UNKNOWN\r\n"), source: undefined },
  { name: "UNKNOWN of the maximum length", bytes: Buffer.from(`PROXY UNKNOWN ${"f".repeat(91)}\r\n`),
    source: undefined },
  { name: "binary TCP4", bytes: binaryHeader(0x21, 0x11, ipv4Addresses), source: ipv4 },
  { name: "binary TCP6", bytes: binaryHeader(0x21, 0x21, ipv6Addresses), source: ipv6 },
  { name: "binary with TLVs",
    bytes: binaryHeader(0x21, 0x11, Buffer.concat([ipv4Addresses, Buffer.from([4, 0, 2, 0, 0])])), source: ipv4 },
  { name: "binary of the maximum size",
    bytes: binaryHeader(0x21, 0x11, Buffer.concat([ipv4Addresses, Buffer.alloc(4096 - 12)])), source: ipv4 },
  { name: "LOCAL", bytes: binaryHeader(0x20, 0x00, Buffer.alloc(0)), source: undefined },
  { name: "LOCAL with addresses", bytes: binaryHeader(0x20, 0x11, ipv4Addresses), source: undefined },
  { name: "an unknown family", bytes: binaryHeader(0x21, 0x31, Buffer.alloc(216)), source: undefined },
  { name: "no family", bytes: binaryHeader(0x21, 0x00, Buffer.alloc(0)), source: undefined },
];

describe.each(good)("readProxyHeader() for a PROXY header ($name)", ({ bytes, source }) => {
  test("returns the source, and ignores following bytes", () => {
    const header = { kind: "header", bytes: bytes.byteLength, source };
    expect([readProxyHeader(bytes), readProxyHeader(Buffer.concat([bytes, rest]))]).toEqual([header, header]);
  });

  test('returns kind "more" if the header is truncated at any byte', () => {
    const kinds = [...bytes.keys()].map((length) => readProxyHeader(bytes.subarray(0, length)).kind);
    expect(new Set(kinds)).toEqual(new Set(["more"]));
  });
});

test.each<{ name: string; bytes: Buffer }>([
  { name: "HTTP/1.1", bytes: rest },
  { name: "the preface of HTTP/2", bytes: Buffer.from("PRI * HTTP/2.0\r\n\r\n") },
  { name: "TLS", bytes: Buffer.from([22, 3, 1]) },
  { name: "an invalid family", bytes: Buffer.from("PROXY TCP5 1.1.1.1 1.1.1.1 1 1\r\n") },
  { name: "TCP4 with IPv6 addresses", bytes: Buffer.from("PROXY TCP4 2001:db8::7 2001:db8::9 1 1\r\n") },
  { name: "TCP4 with an IPv6 destination", bytes: Buffer.from("PROXY TCP4 203.0.113.7 2001:db8::9 1 1\r\n") },
  { name: "TCP4 with an IPv6 source", bytes: Buffer.from("PROXY TCP4 2001:db8::7 192.0.2.9 1 1\r\n") },
  { name: "a destination port above 65535", bytes: Buffer.from("PROXY TCP4 203.0.113.7 192.0.2.9 1 65536\r\n") },
  { name: "TCP6 with IPv4 addresses", bytes: Buffer.from("PROXY TCP6 203.0.113.7 203.0.113.7 1 1\r\n") },
  { name: "an invalid address", bytes: Buffer.from("PROXY TCP4 203.0.113.777 192.0.2.9 1 1\r\n") },
  { name: "a source port above 65535", bytes: Buffer.from("PROXY TCP4 203.0.113.7 192.0.2.9 65536 1\r\n") },
  { name: "a port that begins with 0", bytes: Buffer.from("PROXY TCP4 203.0.113.7 192.0.2.9 047 1\r\n") },
  { name: "a missing field", bytes: Buffer.from("PROXY TCP4 203.0.113.7 192.0.2.9 1\r\n") },
  { name: "an extra field", bytes: Buffer.from("PROXY TCP4 203.0.113.7 192.0.2.9 1 1 1\r\n") },
  { name: "a lowercase signature", bytes: Buffer.from("proxy TCP4 203.0.113.7 192.0.2.9 1 1\r\n") },
  { name: "a line without a line break", bytes: Buffer.from(`PROXY UNKNOWN ${"x".repeat(93)}`) },
  { name: "a line above the maximum length", bytes: Buffer.from(`PROXY UNKNOWN ${"x".repeat(92)}\r\n`) },
  { name: "version 3", bytes: binaryHeader(0x31, 0x11, ipv4Addresses) },
  { name: "an invalid command", bytes: binaryHeader(0x22, 0x11, ipv4Addresses) },
  { name: "truncated addresses", bytes: binaryHeader(0x21, 0x11, ipv4Addresses.subarray(0, 11)) },
  { name: "truncated IPv6 addresses", bytes: binaryHeader(0x21, 0x21, ipv6Addresses.subarray(0, 35)) },
  { name: "a length above the limit", bytes: binaryHeader(0x21, 0x11, ipv4Addresses, 4097) },
  { name: "the largest possible length", bytes: binaryHeader(0x21, 0x11, ipv4Addresses, 65_535) },
])("readProxyHeader() reports $name as malformed", ({ bytes }) => {
  expect(readProxyHeader(bytes)).toEqual({ kind: "malformed" });
});
