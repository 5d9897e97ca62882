import { CommonHeaderFields } from "../../../src/http/exchange/index.ts";
import { describe, expect, test } from "vitest";
import { isTrailer } from "../../../src/engine/http2/header-blocks.ts";
import { readRequestHead } from "../../../src/engine/http2/request-head.ts";

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
  ])("$name is accepted", ({ fields }) => expect(readRequestHead(fields, 0)).toMatchObject({ fields }));

  test("is parsed into its parts", () => {
    const fields = [...get, "content-length", "42"];
    // The decoder has dropped fields.
    // oxfmt-ignore
    expect(readRequestHead(fields, 4321)).toStrictEqual({
      fields, common: Object.assign(new CommonHeaderFields(fields), { listBytes: 4321 }), method: "GET",
      url: "https://example.com:8080/a?b=c", path: "/a?b=c", authority: "example.com:8080", contentLength: 42,
      expectsContinue: false,
    });
  });

  test.each([
    { name: "a 100-continue response", value: "100-Continue", want: true },
    { name: "another expectation", value: "200-ok", want: false },
  ])("sets expectsContinue to $want if $name is requested", ({ value, want }) => {
    expect(readRequestHead([...get, "expect", value], 0)?.expectsContinue).toBe(want);
  });
});

test.each([
  ["without a method (§8.3.1)", without(":method")],
  ["without a scheme (§8.3.1)", without(":scheme")],
  ["without a path (§8.3.1)", without(":path")],
  ["without :authority and Host (§8.3.1)", without(":authority")],
  ["with an empty path (§8.3.1)", replaced(":path", "")],
  ["with a path that does not begin with a slash (§8.3.1)", replaced(":path", "a")],
  ["with a URL as path (§8.3.1)", replaced(":path", "https://example.com/")],
  ["with a space in the path (§8.3.1)", replaced(":path", "/a b")],
  ["with a control character in the path (§8.3.1)", replaced(":path", "/a\x01")],
  ["with a user in the authority (§8.3.1)", replaced(":authority", "user@example.com")],
  ["with an empty authority (§8.3.1)", replaced(":authority", "")],
  ["with a path in the authority (§8.3.1)", replaced(":authority", "example.com/a")],
  ["with a Host that differs from :authority (§8.3.1)", [...get, "host", "example.org"]],
  ["with an invalid scheme (§8.3.1)", replaced(":scheme", "ht tp")],
  ["with an invalid method (§8.3.1)", replaced(":method", "GET /")],
  ["with a duplicate pseudo-header field (§8.3)", [...get, ":path", "/a?b=c"]],
  ["with an unknown pseudo-header field (§8.3)", [":order", "7", ...get]],
  ["with a pseudo-header field of responses (§8.3)", [":status", "200", ...get]],
  ["with a pseudo-header field after regular fields (§8.3)", [...without(":path"), "a", "b", ":path", "/"]],
  ["for CONNECT with scheme and path (§8.5)", [...replaced(":method", "CONNECT")]],
  ["for CONNECT with a path (§8.5)", [":method", "CONNECT", ":authority", "a", ":path", "/"]],
  ["for CONNECT with a scheme (§8.5)", [":method", "CONNECT", ":authority", "a", ":scheme", "http"]],
  ["for CONNECT without :authority (§8.5)", [":method", "CONNECT"]],
  ["with two Hosts (RFC 9110 §7.2)", [...get, "host", "example.com:8080", "host", "example.com:8080"]],
  ["with a name in upper case (§8.2.1)", [...get, "A", "b"]],
  ["with an empty name (§8.2.1)", [...get, "", "b"]],
  ["with a space in a name (§8.2.1)", [...get, "a b", "c"]],
  ["with a colon in a name (§8.2.1)", [...get, "a:b", "c"]],
  ["with NUL in a value (§8.2.1)", [...get, "a", "b\0c"]],
  ["with CR in a value (§8.2.1)", [...get, "a", "b\rc"]],
  ["with LF in a value (§8.2.1)", [...get, "a", "b\nc"]],
  ["with DEL in a value (RFC 9110 §5.5)", [...get, "a", "\x7f"]],
  ["with a space before a value (§8.2.1)", [...get, "a", " b"]],
  ["with a tab before a value (§8.2.1)", [...get, "a", "\tb"]],
  ["with a space after a value (§8.2.1)", [...get, "a", "b "]],
  ["with a tab after a value (§8.2.1)", [...get, "a", "b\t"]],
  ["with Connection (§8.2.2)", [...get, "connection", "close"]],
  ["with Keep-Alive (§8.2.2)", [...get, "keep-alive", "timeout=5"]],
  ["with Proxy-Connection (§8.2.2)", [...get, "proxy-connection", "close"]],
  ["with Transfer-Encoding (§8.2.2)", [...get, "transfer-encoding", "chunked"]],
  ["with Upgrade (§8.2.2)", [...get, "upgrade", "websocket"]],
  ["with another value of TE (§8.2.2)", [...get, "te", "trailers, gzip"]],
  ["with a duplicate Content-Length (RFC 9110 §8.6)", [...get, "content-length", "3", "content-length", "3"]],
  ["for * with a method other than OPTIONS (§8.3.1)", replaced(":path", "*")],
  ["with two Content-Lengths (RFC 9110 §8.6)", [...get, "content-length", "3", "content-length", "4"]],
  ["with an invalid Content-Length (RFC 9110 §8.6)", [...get, "content-length", "+3"]],
  ["with an empty Content-Length (RFC 9110 §8.6)", [...get, "content-length", ""]],
  ["with a Content-Length that is too large (RFC 9110 §8.6)", [...get, "content-length", "9".repeat(30)]],
])("a header %s is malformed", (_name, fields) => expect(readRequestHead(fields, 0)).toBeUndefined());

test.each([
  { name: "fields", fields: ["a", "b"], want: true },
  { name: "no fields", fields: [], want: true },
  { name: "a pseudo-header field", fields: ["a", "b", ":path", "/"], want: false },
  { name: "a name in upper case", fields: ["A", "b"], want: false },
  { name: "a connection-specific field", fields: ["connection", "close"], want: false },
])("isTrailer returns $want for a section with $name (§8.1)", ({ fields, want }) => {
  expect(isTrailer(fields)).toBe(want);
});
