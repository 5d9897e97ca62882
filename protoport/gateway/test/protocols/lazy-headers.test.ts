import { inspect } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { HeaderFields } from "../../src/http/exchange/index.ts";
import { LazyHeaders } from "../../src/protocols/lazy-headers.ts";

const fields: HeaderFields = "Content-Type application/proto x-a 1 X-A 2 set-cookie a=1 set-cookie b=2".split(" ");

describe("LazyHeaders", () => {
  test("is an instance of Headers and prints like one", () => {
    const headers = new LazyHeaders(fields);
    expect(headers).toBeInstanceOf(Headers);
    expect(Object.prototype.toString.call(headers)).toBe("[object Headers]");
    const shown = inspect(new LazyHeaders(["content-type", "text/plain", "x-a", "1"]));
    expect(shown).toBe(inspect(new Headers({ "content-type": "text/plain", "x-a": "1" })));
    expect(shown).toContain("text/plain");
  });

  const want = [
    ...new Headers([
      ["content-type", "application/proto"],
      ["x-a", "1"],
      ["x-a", "2"],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
    ]),
  ];
  test.each<[name: string, read: (headers: Headers) => readonly (readonly string[])[]]>([
    ["a spread", (headers) => [...headers]],
    ["entries()", (headers) => [...headers.entries()]],
    ["keys() and values()", (headers) => zip([...headers.keys()], [...headers.values()])],
    ["forEach()", forEachEntry],
    ["new Headers(it)", (headers) => [...new Headers(headers)]],
    ["a fetch Request", (headers) => [...new Request("http://localhost/", { headers }).headers]],
    ["a fetch Response", (headers) => [...new Response(null, { headers }).headers]],
    ["a spread after getSetCookie()", (headers) => (headers.getSetCookie().length === 2 ? [...headers] : [])],
  ])("lets %s read all fields", (_name, read) => expect(read(new LazyHeaders(fields))).toEqual(want));

  test.each(["cookie", "Cookie"])('get("%s") joins cookie fields with a semicolon', (name) => {
    const headers = new LazyHeaders(["cookie", "a=1", "cookie", "b=2"]);
    expect([headers.get(name), [...headers]]).toEqual(["a=1; b=2", [["cookie", "a=1; b=2"]]]);
  });

  test("omits pseudo-header fields", () =>
    expect([...new LazyHeaders([":method", "POST", ":path", "/", "x-a", "1"])]).toEqual([["x-a", "1"]]));

  test("returns the original list of fields until a field changes", () => {
    const headers = new LazyHeaders(fields);
    expect([headers.get("x-a"), headers.has("x-b"), headers.isPristine]).toEqual(["1, 2", false, true]);
    expect(headers.fields).toBe(fields);
    headers.set("x-a", "3");
    expect(headers.isPristine).toBe(false);
    expect(headers.fields).toEqual("content-type application/proto set-cookie a=1 set-cookie b=2 x-a 3".split(" "));
  });

  test.each<{ name: string; call: (headers: Headers) => unknown }>([
    { name: "get()", call: (headers) => headers.get("no token") },
    { name: 'get(":path")', call: (headers) => headers.get(":path") },
    { name: "has()", call: (headers) => headers.has("") },
    { name: "set()", call: (headers) => headers.set("x-a", "a\0b") },
    { name: "append()", call: (headers) => headers.append("no token", "1") },
    { name: "delete()", call: (headers) => headers.delete("no token") },
  ])("throws a TypeError for an invalid argument of $name, like Headers", ({ call }) => {
    expect(() => call(new Headers())).toThrow(TypeError);
    expect(() => call(new LazyHeaders([":path", "/", ...fields]))).toThrow(TypeError);
  });

  test("behaves like Headers for any sequence of calls", () => {
    const name = fc.constantFrom("x-a", "X-A", "x-b", "set-cookie", "Content-Type", "x-bin");
    const value = fc.stringMatching(/^[!-~]([ -~]{0,6}[!-~])?$/);
    const none = fc.constant("");
    const call = fc.oneof(
      fc.record({ method: fc.constantFrom("append", "set"), name, value }),
      fc.record({ method: fc.constantFrom("get", "has", "delete"), name, value: none }),
      fc.record({ method: fc.constantFrom("entries", "getSetCookie", "forEach"), name: none, value: none }),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value)), fc.array(call), (sent, calls) => {
        const real = new Headers(sent);
        const lazy = new LazyHeaders(sent.flat());
        for (const step of calls) expect(perform(lazy, step)).toEqual(perform(real, step));
        expect([...lazy]).toEqual([...real]);
      }),
    );
  });
});

type Method = "append" | "set" | "get" | "has" | "delete" | "entries" | "getSetCookie" | "forEach";
type Call = { readonly method: Method; readonly name: string; readonly value: string };

function perform(headers: Headers, { method, name, value }: Call): unknown {
  if (method === "entries") return [...headers.entries()];
  if (method === "getSetCookie") return headers.getSetCookie();
  return method === "forEach" ? forEachEntry(headers) : headers[method](name, value);
}

function forEachEntry(headers: Headers): string[][] {
  const entries: string[][] = [];
  headers.forEach((value, name, parent) => {
    expect(parent).toBe(headers);
    entries.push([name, value]);
  });
  return entries;
}

const zip = (names: readonly string[], values: readonly string[]): string[][] =>
  names.map((name, at) => [name, values[at] ?? ""]);
