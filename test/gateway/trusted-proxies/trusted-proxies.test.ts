import { describe, expect, test } from "vitest";
import { createTrustedProxies, isAddressOrNetwork } from "../../../src/gateway/trusted-proxies/index.ts";

const addresses = ["10.0.0.0/8", "2001:db8:1::/48", "192.0.2.1"];
const peer = { address: "10.0.0.1", port: 4711 };

function clientOf(fields: "x-forwarded" | "forwarded" | "none", header: Record<string, string>, from = peer): object {
  const proxies = createTrustedProxies({ addresses, fields });
  const { address, port, scheme, host } = proxies.clientOf(from, { get: (name) => header[name] ?? null });
  return { address, port, ...(scheme && { scheme }), ...(host && { host }) };
}

const many = (count: number, element: string): string => Array(count).fill(element).join(", ");

describe("Forwarded", () => {
  test.each<{ name: string; field: string; want: object }>([
    { name: "nothing", field: "", want: peer },
    { name: "an address", field: "for=203.0.113.7", want: { address: "203.0.113.7", port: 0 } },
    { name: "a parameter in capitals", field: "For=203.0.113.7", want: { address: "203.0.113.7", port: 0 } },
    { name: "an address with a port", field: 'for="203.0.113.7:47"', want: { address: "203.0.113.7", port: 47 } },
    { name: "IPv6", field: 'for="[2001:DB8:2::1]:47"', want: { address: "2001:db8:2::1", port: 47 } },
    { name: "IPv6 without a port", field: 'for="[2001:db8:2::1]"', want: { address: "2001:db8:2::1", port: 0 } },
    { name: "IPv4 in IPv6", field: 'for="[::ffff:203.0.113.7]"', want: { address: "203.0.113.7", port: 0 } },
    {
      name: "all parameters",
      field: 'for=203.0.113.7;proto=https;host="plants.example:8443";by=10.0.0.1',
      want: { address: "203.0.113.7", port: 0, scheme: "https", host: "plants.example:8443" },
    },
    {
      name: "white space",
      field: " for=203.0.113.7 ; proto=http ",
      want: { address: "203.0.113.7", port: 0, scheme: "http" },
    },
    { name: "escapes in quotes", field: 'for="203\\.0.113.7"', want: { address: "203.0.113.7", port: 0 } },
    {
      name: "trusted proxies",
      field: "for=203.0.113.7, for=10.9.9.9, for=192.0.2.1",
      want: { address: "203.0.113.7", port: 0 },
    },
    {
      name: "what the client has made up",
      field: "for=10.1.1.1, for=203.0.113.7, for=10.9.9.9",
      want: { address: "203.0.113.7", port: 0 },
    },
    {
      name: "what a proxy that is not trusted says about the scheme",
      field: "for=198.51.100.1;proto=https, for=203.0.113.7;proto=http",
      want: { address: "203.0.113.7", port: 0, scheme: "http" },
    },
    { name: "trusted proxies alone", field: "for=10.3.3.3, for=10.2.2.2", want: { address: "10.3.3.3", port: 0 } },
    {
      name: "an unknown node",
      field: "for=203.0.113.7, for=unknown, for=10.2.2.2",
      want: { address: "10.2.2.2", port: 0 },
    },
    { name: "an obfuscated node", field: "for=_hidden", want: peer },
    { name: "an obfuscated port", field: 'for="203.0.113.7:_x"', want: peer },
    { name: "no node", field: "proto=https", want: { ...peer, scheme: "https" } },
    { name: "an element that is empty", field: "for=203.0.113.7, , ,", want: { address: "203.0.113.7", port: 0 } },
    { name: "IPv6 without brackets", field: 'for="2001:db8:2::1"', want: { address: "2001:db8:2::1", port: 0 } },
    { name: "IPv6 with a zone", field: 'for="[fe80::1%eth0]"', want: peer },
    { name: "brackets without quotes", field: "for=[2001:db8:2::1]", want: peer },
    { name: "a port beyond the last", field: 'for="203.0.113.7:65536"', want: peer },
    { name: "a name", field: "for=attacker.example", want: peer },
    { name: "a parameter that comes twice", field: "for=203.0.113.7;for=203.0.113.8", want: peer },
    {
      name: "a quotation mark that swallows nothing",
      field: 'for="203.0.113.8, for=203.0.113.7',
      want: { address: "203.0.113.7", port: 0 },
    },
    { name: "a quotation mark alone", field: '"', want: peer },
    { name: "an empty text in quotes", field: 'host="";for=203.0.113.7', want: { address: "203.0.113.7", port: 0 } },
    { name: "a backslash at the end", field: 'for="203.0.113.7\\"', want: peer },
    { name: "a comma in quotes", field: 'for="_a,for=203.0.113.8"', want: peer },
    {
      name: "a comma in quotes beside an address",
      field: 'for=203.0.113.7;by="_a,_b"',
      want: { address: "203.0.113.7", port: 0 },
    },
    {
      name: "escaped quotation marks beside an address",
      field: 'for=203.0.113.7;by="_a\\"\\"_b"',
      want: { address: "203.0.113.7", port: 0 },
    },
    { name: "no syntax at all", field: "203.0.113.7", want: peer },
    { name: "a scheme that is none", field: "for=203.0.113.7;proto=gopher", want: { address: "203.0.113.7", port: 0 } },
    {
      name: "a host that is longer than any",
      field: `for=203.0.113.7;host=${"h".repeat(262)}`,
      want: { address: "203.0.113.7", port: 0 },
    },
    { name: "a host with a user", field: 'for=203.0.113.7;host="a@b"', want: { address: "203.0.113.7", port: 0 } },
    {
      name: "a chain of 19 and the client",
      field: `for=203.0.113.7, ${many(19, "for=10.2.2.2")}`,
      want: { address: "203.0.113.7", port: 0 },
    },
    {
      name: "a chain of 20, and what is beyond it",
      field: `for=203.0.113.7, ${many(20, "for=10.2.2.2")}`,
      want: { address: "10.2.2.2", port: 0 },
    },
    {
      name: "19 empty elements and the client",
      field: `for=203.0.113.7${",".repeat(19)}`,
      want: { address: "203.0.113.7", port: 0 },
    },
    { name: "20 empty elements, and what is beyond them", field: `for=203.0.113.7${",".repeat(20)}`, want: peer },
    {
      name: "an element of 1024 characters",
      field: `for=203.0.113.7;a=${"b".repeat(1024 - 18)}`,
      want: { address: "203.0.113.7", port: 0 },
    },
    { name: "an element of 1025 characters", field: `for=203.0.113.7;a=${"b".repeat(1025 - 18)}`, want: peer },
    {
      name: "a text in quotes that makes an element of 1025 characters",
      field: `for=203.0.113.7;a="${"b".repeat(1025 - 20)}"`,
      want: peer,
    },
  ])("$name", ({ field, want }) => {
    expect(clientOf("forwarded", { forwarded: field, "x-forwarded-for": "198.51.100.66" })).toEqual(want);
  });

  test.each([
    ["commas", ","],
    ["quotation marks", '"'],
    ["backslashes", "\\"],
    ["escaped quotation marks", '\\"'],
    ["semicolons", ";"],
    ["opened pairs", 'a="'],
  ])("16 KiB of %s hide nothing that a proxy has added", (_name, text) => {
    const forwarded = `${text.repeat(16_384 / text.length)}, for=203.0.113.7`;
    expect(clientOf("forwarded", { forwarded })).toEqual({ address: "203.0.113.7", port: 0 });
    expect(clientOf("forwarded", { forwarded: `${forwarded}, for=10.2.2.2` })).toEqual({
      address: "203.0.113.7",
      port: 0,
    });
  });
});

describe("X-Forwarded-For, -Proto and -Host", () => {
  test.each<{ name: string; header: Record<string, string>; want: object }>([
    { name: "nothing", header: {}, want: peer },
    { name: "an address", header: { "x-forwarded-for": "203.0.113.7" }, want: { address: "203.0.113.7", port: 0 } },
    {
      name: "an address with a port",
      header: { "x-forwarded-for": "203.0.113.7:47" },
      want: { address: "203.0.113.7", port: 47 },
    },
    { name: "IPv6", header: { "x-forwarded-for": "2001:db8:2::1" }, want: { address: "2001:db8:2::1", port: 0 } },
    {
      name: "IPv6 with a port",
      header: { "x-forwarded-for": "[2001:db8:2::1]:47" },
      want: { address: "2001:db8:2::1", port: 47 },
    },
    {
      name: "what the client has made up",
      header: { "x-forwarded-for": "10.1.1.1, 203.0.113.7,10.2.2.2" },
      want: { address: "203.0.113.7", port: 0 },
    },
    { name: "unknown", header: { "x-forwarded-for": "203.0.113.7, unknown" }, want: peer },
    { name: "IPv6 with a zone", header: { "x-forwarded-for": "fe80::1%eth0" }, want: peer },
    {
      name: "scheme and host of the nearest proxy",
      header: {
        "x-forwarded-for": "203.0.113.7, 10.2.2.2",
        "x-forwarded-proto": "https",
        "x-forwarded-host": "plants.example",
      },
      want: { address: "203.0.113.7", port: 0, scheme: "https", host: "plants.example" },
    },
    {
      name: "a scheme from each proxy",
      header: { "x-forwarded-for": "203.0.113.7, 10.2.2.2", "x-forwarded-proto": "https, http" },
      want: { address: "203.0.113.7", port: 0, scheme: "https" },
    },
    {
      name: "a scheme that the client has put in front",
      header: { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https, http" },
      want: { address: "203.0.113.7", port: 0, scheme: "http" },
    },
    {
      name: "a chain of 19 and the client",
      header: { "x-forwarded-for": `203.0.113.7, ${many(19, "10.2.2.2")}` },
      want: { address: "203.0.113.7", port: 0 },
    },
    {
      name: "a chain of 20, and what is beyond it",
      header: { "x-forwarded-for": `203.0.113.7, ${many(20, "10.2.2.2")}` },
      want: { address: "10.2.2.2", port: 0 },
    },
    {
      name: "19 empty items and the client",
      header: { "x-forwarded-for": `203.0.113.7${",".repeat(19)}` },
      want: { address: "203.0.113.7", port: 0 },
    },
    {
      name: "20 empty items, and what is beyond them",
      header: { "x-forwarded-for": `203.0.113.7${",".repeat(20)}` },
      want: peer,
    },
    {
      name: "an empty item at either end",
      header: { "x-forwarded-for": ",203.0.113.7, 10.2.2.2,", "x-forwarded-proto": ", https, http," },
      want: { address: "203.0.113.7", port: 0, scheme: "https" },
    },
    {
      name: "a scheme without an address",
      header: { "x-forwarded-proto": "https" },
      want: { ...peer, scheme: "https" },
    },
    { name: "the other field alone", header: { forwarded: "for=203.0.113.7" }, want: peer },
  ])("$name", ({ header, want }) => {
    expect(clientOf("x-forwarded", header)).toEqual(want);
  });
});

test.each(["x-forwarded", "forwarded"] as const)("%s of a peer that is not trusted says nothing", (fields) => {
  const header = { forwarded: "for=203.0.113.7;proto=https", "x-forwarded-for": "203.0.113.7" };
  const stranger = { address: "198.51.100.1", port: 1 };
  expect(clientOf(fields, header, stranger)).toEqual(stranger);
});

test("of proxies that write no fields none is read", () => {
  expect(clientOf("none", { forwarded: "for=203.0.113.7", "x-forwarded-for": "203.0.113.7" })).toEqual(peer);
});

test.each(["10.255.0.1", "::ffff:10.0.0.1", "2001:DB8:1:ffff::1", "192.0.2.1"])("%s is trusted", (address) => {
  expect(createTrustedProxies({ addresses }).has(address)).toBe(true);
});

test.each(["11.0.0.1", "192.0.2.2", "2001:db8:2::1", "::1", "", "10.0.0.1 ", "localhost", "::ffff:11.0.0.1"])(
  "%j is not",
  (address) => {
    expect(createTrustedProxies({ addresses }).has(address)).toBe(false);
  },
);

test.each([
  "10.0.0.0/33",
  "10.0.0/8",
  "proxy.example",
  "10.0.0.0/",
  "::/129",
  "",
  "10.0.0.0/-1",
  "10.0.0.0/08",
  "fe80::%1/64",
])("%j is neither an address nor a network", (text) => {
  expect(isAddressOrNetwork(text)).toBe(false);
  expect(() => createTrustedProxies({ addresses: [text] })).toThrow(TypeError);
});

test("0.0.0.0/0 and ::/0 are all there is", () => {
  const proxies = createTrustedProxies({ addresses: ["0.0.0.0/0", "::/0"] });
  expect(["203.0.113.7", "2001:db8::1"].map((address) => proxies.has(address))).toEqual([true, true]);
});
