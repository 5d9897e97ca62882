import { CommonHeaderFields } from "../../../gateway/src/exchange/index.ts";
import { describe, expect, test } from "vitest";
import { isTrailer } from "../../src/http2/field-rules.ts";
import { readRequestHead } from "../../src/http2/request-head.ts";

const get = [":method", "GET", ":scheme", "https", ":path", "/a?b=c", ":authority", "example.com:8080"];
const without = (name: string): string[] => get.filter((_, i) => get[i - (i % 2)] !== name);
const instead = (name: string, value: string): string[] => get.map((text, i) => (get[i - 1] === name ? value : text));

describe("the header of a request", () => {
  test.each([
    { name: "as it should be", fields: get },
    { name: "with its pseudo-header fields in any order", fields: [...get.slice(4), ...get.slice(0, 4)] },
    { name: "with Host in place of the authority", fields: [...without(":authority"), "host", "example.com"] },
    { name: "with Host beside the authority, in another case", fields: [...get, "host", "EXAMPLE.com:8080"] },
    { name: "with an IPv6 address", fields: instead(":authority", "[::1]:80") },
    { name: "for no path", fields: [":method", "OPTIONS", ...instead(":path", "*").slice(2)] },
    { name: "with octets above ASCII in the path", fields: instead(":path", "/\xd9\xa7") },
    { name: "for a tunnel", fields: [":method", "CONNECT", ":authority", "example.com:443"] },
    { name: "with a method of its own", fields: instead(":method", "M-SEARCH") },
    { name: "with TE: trailers", fields: [...get, "te", "Trailers"] },
    { name: "with a tab and octets above ASCII in a value", fields: [...get, "a", "b\tc\xff"] },
    { name: "with an empty value", fields: [...get, "a", ""] },
  ])("$name is read", ({ fields }) => {
    expect(readRequestHead(fields)).toMatchObject({ fields });
  });

  test("is taken apart", () => {
    const fields = [...get, "content-length", "42"];
    expect(readRequestHead(fields)).toStrictEqual({
      fields,
      common: new CommonHeaderFields(fields),
      method: "GET",
      url: "https://example.com:8080/a?b=c",
      path: "/a?b=c",
      authority: "example.com:8080",
      contentLength: 42,
      expectsContinue: false,
    });
  });

  test.each([
    { name: "is told to send its body", value: "100-Continue", want: true },
    { name: "is promised something else", value: "200-ok", want: false },
  ])("whose client expects that it $name says whether it waits for 100 Continue", ({ value, want }) => {
    expect(readRequestHead([...get, "expect", value])?.expectsContinue).toBe(want);
  });
});

describe("a header is malformed:", () => {
  test.each([
    { name: "§8.3.1: without a method", fields: without(":method") },
    { name: "§8.3.1: without a scheme", fields: without(":scheme") },
    { name: "§8.3.1: without a path", fields: without(":path") },
    { name: "§8.3.1: without authority and Host", fields: without(":authority") },
    { name: "§8.3.1: with an empty path", fields: instead(":path", "") },
    { name: "§8.3.1: with a path that does not begin with a slash", fields: instead(":path", "a") },
    { name: "§8.3.1: with a URL for a path", fields: instead(":path", "https://example.com/") },
    { name: "§8.3.1: with a space in the path", fields: instead(":path", "/a b") },
    { name: "§8.3.1: with a control in the path", fields: instead(":path", "/a\x01") },
    { name: "§8.3.1: with a user in the authority", fields: instead(":authority", "user@example.com") },
    { name: "§8.3.1: with an empty authority", fields: instead(":authority", "") },
    { name: "§8.3.1: with a path in the authority", fields: instead(":authority", "example.com/a") },
    { name: "§8.3.1: with a Host that is not the authority", fields: [...get, "host", "example.org"] },
    { name: "§8.3.1: with a scheme that is none", fields: instead(":scheme", "ht tp") },
    { name: "§8.3.1: with a method that is none", fields: instead(":method", "GET /") },
    { name: "§8.3: with a pseudo-header field twice", fields: [...get, ":path", "/a?b=c"] },
    { name: "§8.3: with one that nobody knows", fields: [":order", "7", ...get] },
    { name: "§8.3: with a response's", fields: [":status", "200", ...get] },
    { name: "§8.3: with one behind the others", fields: [...without(":path"), "a", "b", ":path", "/"] },
    { name: "§8.5: for a tunnel with a path", fields: [...instead(":method", "CONNECT")] },
    { name: "§8.5: for a tunnel with a path alone", fields: [":method", "CONNECT", ":authority", "a", ":path", "/"] },
    { name: "§8.5: for a tunnel with a scheme", fields: [":method", "CONNECT", ":authority", "a", ":scheme", "http"] },
    { name: "§8.5: for a tunnel to nowhere", fields: [":method", "CONNECT"] },
    { name: "RFC 9110 §7.2: with two Hosts", fields: [...get, "host", "example.com:8080", "host", "example.com:8080"] },
    { name: "§8.2.1: with a name in upper case", fields: [...get, "A", "b"] },
    { name: "§8.2.1: with an empty name", fields: [...get, "", "b"] },
    { name: "§8.2.1: with a space in a name", fields: [...get, "a b", "c"] },
    { name: "§8.2.1: with a colon in a name", fields: [...get, "a:b", "c"] },
    { name: "§8.2.1: with NUL in a value", fields: [...get, "a", "b\0c"] },
    { name: "§8.2.1: with CR in a value", fields: [...get, "a", "b\rc"] },
    { name: "§8.2.1: with LF in a value", fields: [...get, "a", "b\nc"] },
    { name: "RFC 9110 §5.5: with DEL in a value", fields: [...get, "a", "\x7f"] },
    { name: "§8.2.1: with a space before a value", fields: [...get, "a", " b"] },
    { name: "§8.2.1: with a tab before a value", fields: [...get, "a", "\tb"] },
    { name: "§8.2.1: with a space behind a value", fields: [...get, "a", "b "] },
    { name: "§8.2.1: with a tab behind a value", fields: [...get, "a", "b\t"] },
    { name: "§8.2.2: with Connection", fields: [...get, "connection", "close"] },
    { name: "§8.2.2: with Keep-Alive", fields: [...get, "keep-alive", "timeout=5"] },
    { name: "§8.2.2: with Proxy-Connection", fields: [...get, "proxy-connection", "close"] },
    { name: "§8.2.2: with Transfer-Encoding", fields: [...get, "transfer-encoding", "chunked"] },
    { name: "§8.2.2: with Upgrade", fields: [...get, "upgrade", "websocket"] },
    { name: "§8.2.2: with TE of anything else", fields: [...get, "te", "trailers, gzip"] },
    {
      name: "RFC 9110 §8.6: with the same length twice",
      fields: [...get, "content-length", "3", "content-length", "3"],
    },
    { name: "§8.3.1: for no path, by a method that needs one", fields: instead(":path", "*") },
    { name: "RFC 9110 §8.6: with two lengths", fields: [...get, "content-length", "3", "content-length", "4"] },
    { name: "RFC 9110 §8.6: with a length that is none", fields: [...get, "content-length", "+3"] },
    { name: "RFC 9110 §8.6: with an empty length", fields: [...get, "content-length", ""] },
    { name: "RFC 9110 §8.6: with a length past all numbers", fields: [...get, "content-length", "9".repeat(30)] },
  ])("$name", ({ fields }) => {
    expect(readRequestHead(fields)).toBeUndefined();
  });
});

test.each([
  { name: "fields", fields: ["a", "b"], want: true },
  { name: "nothing", fields: [], want: true },
  { name: "a pseudo-header field", fields: ["a", "b", ":path", "/"], want: false },
  { name: "a name in upper case", fields: ["A", "b"], want: false },
  { name: "a field of the connection", fields: ["connection", "close"], want: false },
])("a trailer section of $name is taken: $want (§8.1)", ({ fields, want }) => {
  expect(isTrailer(fields)).toBe(want);
});
