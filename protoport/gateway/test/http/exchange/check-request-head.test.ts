import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../../src/http/exchange/limits.ts";
import { authorityOf, checkRequestHead } from "../../../src/http/exchange/check-request-head.ts";

const limits = { ...defaultLimits, urlBytes: 40 };

function check(target: string, authority: string | null = "localhost", required = true, httpMethod = "GET"): unknown {
  return checkRequestHead(httpMethod, target, authority, required, 0, limits);
}

describe("checkRequestHead", () => {
  test.each([
    { target: "/orders/7", want: "/orders/7" },
    { target: "/orders/7?x=//y", want: "/orders/7?x=//y" },
    { target: "//orders", want: "//orders" },
    { target: "http://localhost/orders/7", want: "/orders/7" },
    { target: "HTTPS://localhost:8080/orders", want: "/orders" },
    { target: "http://localhost", want: "/" },
    { target: "http://localhost?x=1", want: "/?x=1" },
  ])("accepts $target as a target", ({ target, want }) => expect(check(target)).toBe(want));

  test.each([
    { name: "an empty target", target: "" },
    { name: "a path without a slash", target: "orders/7" },
    { name: "a fragment", target: "/orders/7#x" },
    { name: "the authority form", target: "localhost:80" },
    { name: "user information", target: "http://user@localhost/x" },
    { name: "another scheme", target: "ftp://localhost/x" },
    { name: "an absolute form without a host", target: "http:///x" },
    { name: "an absolute form with an invalid host", target: "http://a,b c/x" },
  ])("refuses $name with status 400", ({ target }) => expect(check(target)).toMatchObject({ httpStatus: 400 }));

  test.each([
    { verb: "accepts", httpMethod: "OPTIONS", want: "*" },
    { verb: "refuses", httpMethod: "GET", want: expect.objectContaining({ httpStatus: 400 }) },
    { verb: "refuses", httpMethod: "DELETE", want: expect.objectContaining({ httpStatus: 400 }) },
  ])("$verb $httpMethod with the target *", ({ httpMethod, want }) => {
    expect(check("*", "localhost", true, httpMethod)).toEqual(want);
  });

  test("refuses a target above the length limit", () => {
    expect(check(`/${"x".repeat(39)}`)).toMatch(/^\/x+$/);
    expect(check(`/${"x".repeat(40)}`)).toMatchObject({ httpStatus: 414 });
  });

  test.each([
    { verb: "accepts", listBytes: 100, want: "/" },
    { verb: "refuses", listBytes: 101, want: expect.objectContaining({ httpStatus: 431 }) },
  ])("$verb a field list of $listBytes bytes if the limit is 100 bytes", ({ listBytes, want }) => {
    expect(checkRequestHead("GET", "/", "localhost", true, listBytes, { ...limits, headerBytes: 100 })).toEqual(want);
  });
});

test.each(
  // oxfmt-ignore
  [
    "localhost", "localhost:8080", "127.0.0.1:80", "[::1]:8080", "[::ffff:127.0.0.1]", "orders.example.com",
    "xn--bcher-kva.example:443", "a_b.example", "host:", "%6Frders",
  ],
)("the authority of a request %s is accepted", (authority) => expect(check("/", authority)).toBe("/"));

test.each(
  // oxfmt-ignore
  [
    "", " ", "a b", "host:port", "host:123456", "host/path", "user@host", "a, b", "::1", "[::1", "[]", "%zz", "hôte",
    "host\tx", "http://host", "a,", "?", "#",
  ],
)("the authority of a request %j is refused every time", (authority) => {
  for (const _ of [1, 2]) expect(check("/", authority)).toMatchObject({ httpStatus: 400 });
});

test("the authority of a request is required in HTTP/1.1 and HTTP/2, but not in HTTP/1.0", () =>
  expect([check("/", null, true), check("/", null, false)]).toMatchObject([{ httpStatus: 400 }, "/"]));

test.each([
  { target: "/x", host: "a:1", want: "a:1" },
  { target: "http://b/x", host: "a:1", want: "b" },
  { target: "HTTPS://b:2?x", host: "a:1", want: "b:2" },
  { target: "http://b:2", host: null, want: "b:2" },
  { target: "/http://b/x", host: null, want: "" },
])('the authority for the target $target and Host $host is "$want"', ({ target, host, want }) => {
  expect(authorityOf(target, host)).toBe(want);
});
