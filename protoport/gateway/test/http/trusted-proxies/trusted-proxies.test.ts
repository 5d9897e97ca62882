import { describe, expect, test } from "vitest";
import { createTrustedProxies, isAddressOrNetwork } from "../../../src/http/trusted-proxies/index.ts";

const addresses = ["10.0.0.0/8", "2001:db8:1::/48", "192.0.2.1"];
const peer = { address: "10.0.0.1", port: 4711 };

function clientOf(fields: "x-forwarded" | "forwarded" | "none", header: Record<string, string>, from = peer): object {
  const proxies = createTrustedProxies({ addresses, fields });
  const { address, port, scheme, host } = proxies.clientOf(from, { get: (name) => header[name] ?? null });
  return { address, port, ...(scheme && { scheme }), ...(host && { host }) };
}

const many = (count: number, element: string): string => Array(count).fill(element).join(", ");

/** Returns a field with this many characters, for a client behind five proxies. */
function chainOf(length: number): string {
  const proxy = "for=10.2.2.2;a=";
  const others = `for=203.0.113.7,${`${proxy.padEnd(900, "b")},`.repeat(4)}`;
  return others + proxy.padEnd(length - others.length, "b");
}

const parameters = (count: number): string => Array.from({ length: count }, (_, at) => `a${at}=b`).join(";");

test.each<[name: string, field: string, want: object]>(
  // oxfmt-ignore
  [
      ["an empty field", "", peer],
      ["an address", "for=203.0.113.7", { address: "203.0.113.7", port: 0 }],
      ["a parameter in capitals", "For=203.0.113.7", { address: "203.0.113.7", port: 0 }],
      ["an address with a port", 'for="203.0.113.7:47"', { address: "203.0.113.7", port: 47 }],
      ["an IPv6 address", 'for="[2001:DB8:2::1]:47"', { address: "2001:db8:2::1", port: 47 }],
      ["an IPv6 address without a port", 'for="[2001:db8:2::1]"', { address: "2001:db8:2::1", port: 0 }],
      ["an IPv4-mapped IPv6 address", 'for="[::ffff:203.0.113.7]"', { address: "203.0.113.7", port: 0 }],
      ["all parameters", 'for=203.0.113.7;proto=https;host="orders.example:8443";by=10.0.0.1',
        { address: "203.0.113.7", port: 0, scheme: "https", host: "orders.example:8443" }],
      ["white space around parameters", " for=203.0.113.7 ; proto=http ",
        { address: "203.0.113.7", port: 0, scheme: "http" }],
      ["an escape in a quoted string", 'for="203\\.0.113.7"', { address: "203.0.113.7", port: 0 }],
      ["a chain of trusted proxies", "for=203.0.113.7, for=10.9.9.9, for=192.0.2.1",
        { address: "203.0.113.7", port: 0 }],
      ["an address forged by the client", "for=10.1.1.1, for=203.0.113.7, for=10.9.9.9",
        { address: "203.0.113.7", port: 0 }],
      ["a scheme from an untrusted proxy", "for=198.51.100.1;proto=https, for=203.0.113.7;proto=http",
        { address: "203.0.113.7", port: 0, scheme: "http" }],
      ["a chain without a client", "for=10.3.3.3, for=10.2.2.2", { address: "10.3.3.3", port: 0 }],
      ["an unknown node", "for=203.0.113.7, for=unknown, for=10.2.2.2", { address: "10.2.2.2", port: 0 }],
      ["an obfuscated node", "for=_hidden", peer],
      ["an obfuscated port", 'for="203.0.113.7:_x"', peer],
      ["a missing for parameter", "proto=https", { ...peer, scheme: "https" }],
      ["empty elements", "for=203.0.113.7, , ,", { address: "203.0.113.7", port: 0 }],
      ["an IPv6 address without brackets", 'for="2001:db8:2::1"', { address: "2001:db8:2::1", port: 0 }],
      ["an IPv6 address with a zone", 'for="[fe80::1%eth0]"', peer],
      ["an IPv6 address in brackets but not in quotes", "for=[2001:db8:2::1]", peer],
      ["a port above 65535", 'for="203.0.113.7:65536"', peer],
      ["a host name instead of an address", "for=attacker.example", peer],
      ["a repeated parameter", "for=203.0.113.7;for=203.0.113.8", peer],
      ["an unpaired quotation mark in the client's entry", 'for="203.0.113.8, for=203.0.113.7',
        { address: "203.0.113.7", port: 0 }],
      ["a single quotation mark", '"', peer],
      ["an empty quoted string", 'host="";for=203.0.113.7', { address: "203.0.113.7", port: 0 }],
      ["a backslash at the end", 'for="203.0.113.7\\"', peer],
      ["a comma in a quoted address", 'for="_a,for=203.0.113.8"', peer],
      ["a comma in another quoted parameter", 'for=203.0.113.7;by="_a,_b"', { address: "203.0.113.7", port: 0 }],
      ["escaped quotation marks in another parameter", 'for=203.0.113.7;by="_a\\"\\"_b"',
        { address: "203.0.113.7", port: 0 }],
      ["a field without parameters", "203.0.113.7", peer],
      ["an unknown scheme", "for=203.0.113.7;proto=gopher", { address: "203.0.113.7", port: 0 }],
      ["a host above the maximum length", `for=203.0.113.7;host=${"h".repeat(262)}`,
        { address: "203.0.113.7", port: 0 }],
      ["a host with a user", 'for=203.0.113.7;host="a@b"', { address: "203.0.113.7", port: 0 }],
      ["a client behind 19 proxies", `for=203.0.113.7, ${many(19, "for=10.2.2.2")}`,
        { address: "203.0.113.7", port: 0 }],
      ["a client behind too many proxies", `for=203.0.113.7, ${many(20, "for=10.2.2.2")}`,
        { address: "10.2.2.2", port: 0 }],
      ["a client behind 19 empty elements", `for=203.0.113.7${",".repeat(19)}`, { address: "203.0.113.7", port: 0 }],
      ["a client behind too many empty elements", `for=203.0.113.7${",".repeat(20)}`, peer],
      ["an element of 1024 characters", `for=203.0.113.7;a=${"b".repeat(1024 - 18)}`,
        { address: "203.0.113.7", port: 0 }],
      ["16 parameters", `for=203.0.113.7;${parameters(15)}`, { address: "203.0.113.7", port: 0 }],
      ["17 parameters", `for=203.0.113.7;${parameters(16)}`, peer],
      ["a field of 4096 characters", chainOf(4_096), { address: "203.0.113.7", port: 0 }],
      ["a field of 4097 characters", chainOf(4_097), { address: "10.2.2.2", port: 0 }],
      ["an element of 1025 characters", `for=203.0.113.7;a=${"b".repeat(1025 - 18)}`, peer],
      ["a quoted string in an element of 1025 characters", `for=203.0.113.7;a="${"b".repeat(1025 - 20)}"`, peer],
    ],
)("clientOf() with Forwarded given %s, returns the expected client", (_, field, want) => {
  expect(clientOf("forwarded", { forwarded: field, "x-forwarded-for": "198.51.100.66" })).toEqual(want);
});

test.each([
  ["commas", ","],
  ["quotation marks", '"'],
  ["backslashes", "\\"],
  ["escaped quotation marks", '\\"'],
  ["semicolons", ";"],
  ["unclosed quoted strings", 'a="'],
])("clientOf() with Forwarded skips 16 KiB of %s before the proxy's entry", (_name, text) => {
  const forwarded = `${text.repeat(16_384 / text.length)}, for=203.0.113.7`;
  expect(clientOf("forwarded", { forwarded })).toEqual({ address: "203.0.113.7", port: 0 });
  const client = clientOf("forwarded", { forwarded: `${forwarded}, for=10.2.2.2` });
  expect(client).toEqual({ address: "203.0.113.7", port: 0 });
});

test.each<[name: string, header: Record<string, string>, want: object]>(
  // oxfmt-ignore
  [
      ["no fields", {}, peer],
      ["an address", { "x-forwarded-for": "203.0.113.7" }, { address: "203.0.113.7", port: 0 }],
      ["an address with a port", { "x-forwarded-for": "203.0.113.7:47" }, { address: "203.0.113.7", port: 47 }],
      ["an IPv6 address", { "x-forwarded-for": "2001:db8:2::1" }, { address: "2001:db8:2::1", port: 0 }],
      ["an IPv6 address with a port", { "x-forwarded-for": "[2001:db8:2::1]:47" },
        { address: "2001:db8:2::1", port: 47 }],
      ["an address forged by the client", { "x-forwarded-for": "10.1.1.1, 203.0.113.7,10.2.2.2" },
        { address: "203.0.113.7", port: 0 }],
      ["the address unknown", { "x-forwarded-for": "203.0.113.7, unknown" }, peer],
      ["an IPv6 address with a zone", { "x-forwarded-for": "fe80::1%eth0" }, peer],
      ["a scheme and a host from the nearest proxy",
        { "x-forwarded-for": "203.0.113.7, 10.2.2.2", "x-forwarded-proto": "https",
          "x-forwarded-host": "orders.example" },
        { address: "203.0.113.7", port: 0, scheme: "https", host: "orders.example" }],
      ["a scheme from each proxy", { "x-forwarded-for": "203.0.113.7, 10.2.2.2", "x-forwarded-proto": "https, http" },
        { address: "203.0.113.7", port: 0, scheme: "https" }],
      ["a scheme forged by the client", { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https, http" },
        { address: "203.0.113.7", port: 0, scheme: "http" }],
      ["a client behind 19 proxies", { "x-forwarded-for": `203.0.113.7, ${many(19, "10.2.2.2")}` },
        { address: "203.0.113.7", port: 0 }],
      ["a client behind too many proxies", { "x-forwarded-for": `203.0.113.7, ${many(20, "10.2.2.2")}` },
        { address: "10.2.2.2", port: 0 }],
      ["a client behind 19 empty items", { "x-forwarded-for": `203.0.113.7${",".repeat(19)}` },
        { address: "203.0.113.7", port: 0 }],
      ["a client behind too many empty items", { "x-forwarded-for": `203.0.113.7${",".repeat(20)}` }, peer],
      ["empty items at both ends",
        { "x-forwarded-for": ",203.0.113.7, 10.2.2.2,", "x-forwarded-proto": ", https, http," },
        { address: "203.0.113.7", port: 0, scheme: "https" }],
      ["a scheme and a host without an address", { "x-forwarded-proto": "https", "x-forwarded-host": "orders.example" },
        { ...peer, scheme: "https", host: "orders.example" }],
      ["an ignored Forwarded field", { forwarded: "for=203.0.113.7" }, peer],
    ],
)("clientOf() with X-Forwarded-For, -Proto and -Host given %s, returns the expected client", (_, header, want) => {
  expect(clientOf("x-forwarded", header)).toEqual(want);
});

const listOf = (count: number, itemOf: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => itemOf(at + 1)).join(", ");

/** Returns which item applies, from 1, or 0 for none. */
const believedOf = (items: number, hops: number): number => (items === hops ? Math.min(items, 1) : items);

describe("clientOf() with X-Forwarded lists", () => {
  // Each trusted proxy has added an address, so the first one is the client's. If there are not as many schemes or
  // hosts, only the last one is reliable, because the nearest proxy has written it.
  const counts = [0, 1, 2, 3, 4];
  const lists = [0, 1, 2, 3].flatMap((hops) =>
    counts.flatMap((schemes) => counts.map((hosts) => ({ hops, schemes, hosts }))),
  );

  test.each(lists)("handles $hops addresses with $schemes schemes and $hosts hosts", ({ hops, schemes, hosts }) => {
    const scheme = believedOf(schemes, hops);
    const host = believedOf(hosts, hops);
    const header: Record<string, string> = {
      ...(hops > 0 && { "x-forwarded-for": listOf(hops, (at) => (at === 1 ? "203.0.113.7" : `10.2.2.${at}`)) }),
      ...(schemes > 0 && { "x-forwarded-proto": listOf(schemes, (at) => (at === scheme ? "https" : "http")) }),
      ...(hosts > 0 && { "x-forwarded-host": listOf(hosts, (at) => `host-${at}.example`) }),
    };
    expect(clientOf("x-forwarded", header)).toEqual({
      ...(hops > 0 ? { address: "203.0.113.7", port: 0 } : peer),
      ...(scheme > 0 && { scheme: "https" }),
      ...(host > 0 && { host: `host-${host}.example` }),
    });
  });

  test.each([
    { name: "is not trusted", middle: "198.51.100.9", want: { address: "198.51.100.9", port: 0 } },
    { name: "is unknown", middle: "unknown", want: { address: "10.2.2.2", port: 0 } },
  ])("values to the left of a hop that $name are ignored", ({ middle, want }) => {
    const hosts = { "x-forwarded-host": "client.example, middle.example, near.example" };
    const schemes = { "x-forwarded-proto": "https, http, https" };
    const header = { "x-forwarded-for": `203.0.113.7, ${middle}, 10.2.2.2`, ...schemes, ...hosts };
    expect(clientOf("x-forwarded", header)).toEqual({ ...want, scheme: "http", host: "middle.example" });
  });
});

test.each(["x-forwarded", "forwarded"] as const)("clientOf() ignores %s fields of an untrusted peer", (fields) => {
  const header = { forwarded: "for=203.0.113.7;proto=https", "x-forwarded-for": "203.0.113.7" };
  const stranger = { address: "198.51.100.1", port: 1 };
  expect(clientOf(fields, header, stranger)).toEqual(stranger);
});

test("clientOf() ignores all header fields with fields: none", () =>
  expect(clientOf("none", { forwarded: "for=203.0.113.7", "x-forwarded-for": "203.0.113.7" })).toEqual(peer));

test.each(["10.255.0.1", "::ffff:10.0.0.1", "2001:DB8:1:ffff::1", "192.0.2.1"])('has("%s") returns true', (address) =>
  expect(createTrustedProxies({ addresses }).has(address)).toBe(true),
);

test.each(["11.0.0.1", "192.0.2.2", "2001:db8:2::1", "::1", "", "10.0.0.1 ", "localhost", "::ffff:11.0.0.1"])(
  "has(%j) returns false for another address",
  (address) => expect(createTrustedProxies({ addresses }).has(address)).toBe(false),
);

test.each(
  // oxfmt-ignore
  [
    "10.0.0.0/33", "10.0.0/8", "proxy.example", "10.0.0.0/", "::/129", "", "10.0.0.0/-1", "10.0.0.0/08", "fe80::%1/64",
  ],
)("createTrustedProxies() rejects %j with a TypeError", (text) => {
  expect(isAddressOrNetwork(text)).toBe(false);
  expect(() => createTrustedProxies({ addresses: [text] })).toThrow(TypeError);
});

test("the networks 0.0.0.0/0 and ::/0 contain every address", () => {
  const proxies = createTrustedProxies({ addresses: ["0.0.0.0/0", "::/0"] });
  expect(["203.0.113.7", "2001:db8::1"].map((address) => proxies.has(address))).toEqual([true, true]);
});
