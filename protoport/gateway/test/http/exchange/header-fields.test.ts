import { expect, test } from "vitest";
import { CommonHeaderFields, type HeaderFields, readHeaderField } from "../../../src/http/exchange/header-fields.ts";

const fields: HeaderFields = "Content-Type application/proto x-a 1 X-A 2 set-cookie a=1 set-cookie b=2".split(" ");

test.each([
  { name: "finds a field regardless of the case of its name", field: "content-type", want: "application/proto" },
  { name: "joins the values of a repeated field", field: "x-a", want: "1, 2" },
  { name: "returns null for an absent field", field: "x-b", want: null },
  { name: "does not confuse a value with a name", field: "application/proto", want: null },
])("readHeaderField $name", ({ field, want }) => expect(readHeaderField(fields, field)).toBe(want));

test.each([
  { name: "HTTP/2 fields", cookies: ["cookie", "a=1", "cookie", "b=2"], requested: "cookie" },
  { name: "HTTP/1.1 fields", cookies: ["Cookie", "a=1", "Cookie", "b=2"], requested: "cookie" },
  { name: "a requested name in uppercase", cookies: ["cookie", "a=1", "cookie", "b=2"], requested: "Cookie" },
])("readHeaderField joins cookies with a semicolon for $name (RFC 9113 §8.2.3)", ({ cookies, requested }) => {
  expect(readHeaderField(cookies, requested)).toBe("a=1; b=2");
});

test("CommonHeaderFields contains the values that readHeaderField() returns", () => {
  const list = ["Host", "a", "X-Request-ID", "1", "x-host", "b", "content-type", "c", "Content-Type", "d"];
  const [host, xRequestId, contentType] = ["host", "x-request-id", "content-type"].map((name) =>
    readHeaderField(list, name),
  );
  expect(new CommonHeaderFields(list)).toMatchObject({ host, xRequestId, contentType, authorization: null });
});

// oxfmt-ignore
test.each([
  "host", "authorization", "content-type", "content-length", "content-encoding", "transfer-encoding", "expect",
])("CommonHeaderFields contains only %s if no other field is sent", (name) => {
  const held = Object.entries(new CommonHeaderFields([name, "1"])).filter(([, value]) => typeof value === "string");
  expect(held).toEqual([[name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase()), "1"]]);
});
