import { CommonHeaderFields } from "../../../http/src/exchange/index.ts";
import { describe, expect, test } from "vitest";
import { isTrailer } from "../../src/http2/field-rules.ts";
import { readRequestHead } from "../../src/http2/request-head.ts";

const get = [":method", "GET", ":scheme", "https", ":path", "/a?b=c", ":authority", "example.com:8080"];
const without = (name: string): string[] => get.filter((_, i) => get[i - (i % 2)] !== name);
const replaced = (name: string, value: string): string[] => get.map((text, i) => (get[i - 1] === name ? value : text));

describe("the header of a request", () => {
  test.each([
    { name: "with all fields", fields: get },
    { name: "with its pseudo-header fields in any order", fields: [...get.slice(4), ...get.slice(0, 4)] },
    { name: "with Host instead of :authority", fields: [...without(":authority"), "host", "example.com"] },
    { name: "with Host and :authority in different case", fields: [...get, "host", "EXAMPLE.com:8080"] },
    { name: "with an IPv6 address", fields: replaced(":authority", "[::1]:80") },
    { name: "for OPTIONS *", fields: [":method", "OPTIONS", ...replaced(":path", "*").slice(2)] },
    { name: "with non-ASCII octets in the path", fields: replaced(":path", "/\xd9\xa7") },
    { name: "for CONNECT", fields: [":method", "CONNECT", ":authority", "example.com:443"] },
    { name: "with an extension method", fields: replaced(":method", "M-SEARCH") },
    { name: "with TE: trailers", fields: [...get, "te", "Trailers"] },
    { name: "with a tab and non-ASCII octets in a value", fields: [...get, "a", "b\tc\xff"] },
    { name: "with an empty value", fields: [...get, "a", ""] },
  ])("$name is accepted", ({ fields }) => {
    expect(readRequestHead(fields)).toMatchObject({ fields });
  });

  test("is parsed into its parts", () => {
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
    { name: "a 100-continue response", value: "100-Continue", want: true },
    { name: "another expectation", value: "200-ok", want: false },
  ])("sets expectsContinue to $want if $name is requested", ({ value, want }) => {
    expect(readRequestHead([...get, "expect", value])?.expectsContinue).toBe(want);
  });
});

describe("a header is malformed:", () => {
  test.each([
    { name: "§8.3.1: without a method", fields: without(":method") },
    { name: "§8.3.1: without a scheme", fields: without(":scheme") },
    { name: "§8.3.1: without a path", fields: without(":path") },
    { name: "§8.3.1: without :authority and Host", fields: without(":authority") },
    { name: "§8.3.1: with an empty path", fields: replaced(":path", "") },
    { name: "§8.3.1: with a path that does not begin with a slash", fields: replaced(":path", "a") },
    { name: "§8.3.1: with a URL as path", fields: replaced(":path", "https://example.com/") },
    { name: "§8.3.1: with a space in the path", fields: replaced(":path", "/a b") },
    { name: "§8.3.1: with a control character in the path", fields: replaced(":path", "/a\x01") },
    { name: "§8.3.1: with a user in the authority", fields: replaced(":authority", "user@example.com") },
    { name: "§8.3.1: with an empty authority", fields: replaced(":authority", "") },
    { name: "§8.3.1: with a path in the authority", fields: replaced(":authority", "example.com/a") },
    { name: "§8.3.1: with a Host that differs from :authority", fields: [...get, "host", "example.org"] },
    { name: "§8.3.1: with an invalid scheme", fields: replaced(":scheme", "ht tp") },
    { name: "§8.3.1: with an invalid method", fields: replaced(":method", "GET /") },
    { name: "§8.3: with a duplicate pseudo-header field", fields: [...get, ":path", "/a?b=c"] },
    { name: "§8.3: with an unknown pseudo-header field", fields: [":order", "7", ...get] },
    { name: "§8.3: with a pseudo-header field of responses", fields: [":status", "200", ...get] },
    {
      name: "§8.3: with a pseudo-header field after regular fields",
      fields: [...without(":path"), "a", "b", ":path", "/"],
    },
    { name: "§8.5: for CONNECT with scheme and path", fields: [...replaced(":method", "CONNECT")] },
    { name: "§8.5: for CONNECT with a path", fields: [":method", "CONNECT", ":authority", "a", ":path", "/"] },
    { name: "§8.5: for CONNECT with a scheme", fields: [":method", "CONNECT", ":authority", "a", ":scheme", "http"] },
    { name: "§8.5: for CONNECT without :authority", fields: [":method", "CONNECT"] },
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
    { name: "§8.2.1: with a space after a value", fields: [...get, "a", "b "] },
    { name: "§8.2.1: with a tab after a value", fields: [...get, "a", "b\t"] },
    { name: "§8.2.2: with Connection", fields: [...get, "connection", "close"] },
    { name: "§8.2.2: with Keep-Alive", fields: [...get, "keep-alive", "timeout=5"] },
    { name: "§8.2.2: with Proxy-Connection", fields: [...get, "proxy-connection", "close"] },
    { name: "§8.2.2: with Transfer-Encoding", fields: [...get, "transfer-encoding", "chunked"] },
    { name: "§8.2.2: with Upgrade", fields: [...get, "upgrade", "websocket"] },
    { name: "§8.2.2: with another value of TE", fields: [...get, "te", "trailers, gzip"] },
    {
      name: "RFC 9110 §8.6: with a duplicate Content-Length",
      fields: [...get, "content-length", "3", "content-length", "3"],
    },
    { name: "§8.3.1: for * with another method than OPTIONS", fields: replaced(":path", "*") },
    { name: "RFC 9110 §8.6: with two Content-Lengths", fields: [...get, "content-length", "3", "content-length", "4"] },
    { name: "RFC 9110 §8.6: with an invalid Content-Length", fields: [...get, "content-length", "+3"] },
    { name: "RFC 9110 §8.6: with an empty Content-Length", fields: [...get, "content-length", ""] },
    {
      name: "RFC 9110 §8.6: with a Content-Length that is too large",
      fields: [...get, "content-length", "9".repeat(30)],
    },
  ])("violating $name is malformed", ({ fields }) => {
    expect(readRequestHead(fields)).toBeUndefined();
  });
});

test.each([
  { name: "fields", fields: ["a", "b"], want: true },
  { name: "no fields", fields: [], want: true },
  { name: "a pseudo-header field", fields: ["a", "b", ":path", "/"], want: false },
  { name: "a name in upper case", fields: ["A", "b"], want: false },
  { name: "a connection-specific field", fields: ["connection", "close"], want: false },
])("isTrailer returns $want for a section with $name (§8.1)", ({ fields, want }) => {
  expect(isTrailer(fields)).toBe(want);
});
