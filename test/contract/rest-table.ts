import type { Field, HttpRequest } from "../../protoport/testing/src/http/exchange.ts";

/** A REST request, and the complete response that the contract requires. */
export interface RestTestCase {
  /** States the behavior that leads to the response. */
  readonly name: string;
  /** Sent with a valid credential. */
  readonly request: RestRequest;
  readonly want: RestWant;
}

/** A DELETE with only a credential in the header by default. */
export type RestRequest = { readonly path: string; readonly header?: readonly Field[]; readonly body?: string };

/** The HTTP status, and the error record if there is one. */
export interface RestWant {
  readonly httpStatus: number;
  readonly record?: { readonly error: number; readonly message: string };
}

export const plant = 7n;

const deleted: RestWant = { httpStatus: 204 };
const nothingHere: RestWant = { httpStatus: 404, record: { error: 5, message: "no route matches this path" } };
const invalid = (message: string): RestWant => ({ httpStatus: 400, record: { error: 3, message } });
const badId = (sent: string): RestWant => invalid(`id: ${JSON.stringify(sent)} is not an int64`);
const badEscape = invalid("the path has an invalid percent escape");
const notUtf8 = invalid("the path is not valid UTF-8");
const pathBound = invalid('query parameter "id" is already set by the path or the body');
const unknown = (...names: readonly string[]): RestWant =>
  invalid(
    `unknown query parameter${names.length > 1 ? "s" : ""} ${names.map((name) => JSON.stringify(name)).join(", ")}`,
  );
const noBody = invalid("this operation does not accept a body");

// One test case per invalid id kind. protoport/gateway/test/protobuf/messages/json/numbers.test.ts and
// protoport/conformance/cases/ cover the spellings.

/** Path spellings. */
// oxfmt-ignore
export const pathCases: readonly RestTestCase[] = [
  { name: "a canonical id is accepted", request: { path: "/plants/7" }, want: deleted },
  { name: "an escaped digit is decoded", request: { path: "/plants/%37" }, want: deleted },
  { name: "an escaped letter of the path is decoded", request: { path: "/%70lants/7" }, want: deleted },
  { name: "an empty query is ignored", request: { path: "/plants/7?" }, want: deleted },
  { name: "an id has no leading zeros", request: { path: "/plants/07" }, want: badId("07") },
  { name: "a path parameter is part of the segment", request: { path: "/plants/7;x=1" }, want: badId("7;x=1") },
  { name: "an id has ASCII digits only", request: { path: "/plants/%D9%A7" }, want: badId("٧") },
  { name: "a space before the id is not trimmed", request: { path: "/plants/%207" }, want: badId(" 7") },
  { name: "a zero byte does not terminate the id", request: { path: "/plants/7%00" }, want: badId("7\u0000") },
  { name: "an id has no plus sign", request: { path: "/plants/+7" }, want: badId("+7") },
  { name: "minus zero is not canonical", request: { path: "/plants/-0" }, want: badId("-0") },
  { name: "a negative id is accepted", request: { path: "/plants/-7" },
    want: { httpStatus: 400, record: { error: 5, message: "plant -7 not found" } } },
  { name: "a word is not an id", request: { path: "/plants/abc" }, want: badId("abc") },
  { name: "2^63 is too large", request: { path: "/plants/9223372036854775808" }, want: badId("9223372036854775808") },
  { name: "2^64 + 7 does not wrap around to 7", request: { path: "/plants/18446744073709551623" },
    want: badId("18446744073709551623") },
  { name: "a thousand digits are not an id", request: { path: `/plants/${"7".repeat(1_000)}` },
    want: badId(`${"7".repeat(64)}…`) },
  { name: "an unknown verb is part of the id", request: { path: "/plants/7:undelete" }, want: badId("7:undelete") },
  { name: "an escaped slash does not end the segment", request: { path: "/plants/7%2F8" }, want: badId("7/8") },
  { name: "an escape is decoded once", request: { path: "/plants/%2537" }, want: badId("%37") },
  { name: "an escape that is not hexadecimal is refused", request: { path: "/plants/%zz" }, want: badEscape },
  { name: "a truncated escape is refused", request: { path: "/plants/7%2" }, want: badEscape },
  { name: "a percent sign alone is refused", request: { path: "/plants/7%" }, want: badEscape },
  { name: "an escaped half of a UTF-8 character is refused", request: { path: "/plants/%D9" }, want: notUtf8 },
  { name: "an escaped overlong form is refused", request: { path: "/plants/%C0%B7" }, want: notUtf8 },
  { name: "an escaped surrogate is refused", request: { path: "/plants/%ED%A0%80" }, want: notUtf8 },
  { name: "a bad escape on an unknown path is refused", request: { path: "/%zz" }, want: badEscape },
  { name: "a path without an id is not found", request: { path: "/plants/" }, want: nothingHere },
  { name: "a path without an id or final slash is not found", request: { path: "/plants" }, want: nothingHere },
  { name: "the root is not found", request: { path: "/" }, want: nothingHere },
  { name: "a path with a trailing slash is not found", request: { path: "/plants/7/" }, want: nothingHere },
  { name: "a path with another segment is not found", request: { path: "/plants/7/8" }, want: nothingHere },
  { name: "a path with an empty first segment is not found", request: { path: "//plants/7" }, want: nothingHere },
  { name: "a path with an empty segment in the middle is not found", request: { path: "/plants//7" },
    want: nothingHere },
  { name: "a path is case-sensitive", request: { path: "/Plants/7" }, want: nothingHere },
  { name: "a path with a segment of one dot is not found", request: { path: "/plants/./7" }, want: nothingHere },
  { name: "a path with a segment of two dots is not found", request: { path: "/x/../plants/7" }, want: nothingHere },
  { name: "a path with an escaped segment of two dots is not found", request: { path: "/x/%2e%2E/plants/7" },
    want: nothingHere },
  { name: "a path with a backslash is not found", request: { path: "/plants\\7" }, want: nothingHere },
  { name: "the path of another service is not found", request: { path: "/trees/7" }, want: nothingHere },
];

/** Queries and bodies in addition to the path. */
// oxfmt-ignore
export const extraCases: readonly RestTestCase[] = [
  { name: "a query does not override the path", request: { path: "/plants/7?id=8" }, want: pathBound },
  { name: "a query that repeats the path is refused", request: { path: "/plants/7?id=7" }, want: pathBound },
  { name: "a query with an invalid value for the field of the path is refused", request: { path: "/plants/7?id=abc" },
    want: pathBound },
  { name: "an unknown query parameter is refused", request: { path: "/plants/7?x=1" }, want: unknown("x") },
  { name: "several unknown query parameters are all named", request: { path: "/plants/7?x=1&y&%7A=2" },
    want: unknown("x", "y", "z") },
  { name: "a Google system parameter is refused", request: { path: "/plants/7?$alt=json" }, want: unknown("$alt") },
  { name: "a bad escape in the query is refused", request: { path: "/plants/7?x=%zz" },
    want: invalid('query parameter "x=%zz" is malformed') },
  { name: "a query parameter without a name is refused", request: { path: "/plants/7?=1" }, want: unknown("") },
  { name: "the query parameter __proto__ is refused", request: { path: "/plants/7?__proto__=1" },
    want: unknown("__proto__") },

  { name: "a body does not override the path",
    request: { path: "/plants/7", header: [["content-type", "application/json"]], body: '{"id":"9"}' }, want: noBody },
  { name: "an empty JSON object is refused",
    request: { path: "/plants/7", header: [["content-type", "application/json"]], body: "{}" }, want: noBody },
  { name: "a text body is refused", request: { path: "/plants/7", header: [["content-type", "text/plain"]], body: "7" },
    want: noBody },
  { name: "a body without a content type is refused", request: { path: "/plants/7", body: "7" }, want: noBody },
  { name: "a body of one space is refused", request: { path: "/plants/7", body: " " }, want: noBody },
  { name: "an invalid compressed body is refused",
    request: { path: "/plants/7", header: [["content-encoding", "gzip"]], body: "\x1f\x8b" },
    want: invalid("the message is not valid gzip") },
  { name: "an empty body with any content type is accepted",
    request: { path: "/plants/7", header: [["content-type", "text/plain"]], body: "" }, want: deleted },
];

export function toHttpRequest(request: RestRequest, credential: Field): HttpRequest {
  const { path, header = [], body } = request;
  const sent = { httpMethod: "DELETE", path, header: [...header, credential] };
  return body === undefined ? sent : { ...sent, body: Buffer.from(body, "latin1") };
}
