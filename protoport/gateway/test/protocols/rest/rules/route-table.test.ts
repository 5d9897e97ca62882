import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parsePathTemplate } from "../../../../src/protocols/rest/rules/path-template.ts";
import { RouteTable } from "../../../../src/protocols/rest/rules/route-table.ts";
import { numRunsOf } from "@protoport/testing/process";

function tableOf(routes: readonly string[]): RouteTable<string> {
  const table = new RouteTable<string>();
  for (const route of routes) {
    const [httpMethod = "", template = ""] = route.split(" ");
    expect(table.add(httpMethod, parsePathTemplate(template), route)).toBeUndefined();
  }
  return table;
}

const notFound = { kind: "not-found" };

describe("RouteTable.match()", () => {
  // Declared in an order that would cause wrong results if the order mattered.
  // oxfmt-ignore
  const table = tableOf([
    "GET /v1/{rest=**}", "GET /v1/{a}", "DELETE /v1/{a}", "GET /v1/me", "GET /v1/{a}/x/{b}", "GET /v1/me/y/z",
    "POST /v1/{a}:close", "POST /v1/{a}:open", "GET /v1/orders:count", "GET /files/{path=**}",
    "POST /files/{path=**}:archive", "GET /files/{path=**}/info", "GET /files/{path=**}/{last}",
    "GET /shelves/{name=shelves/*/books/*}", "GET /one/*/end", "GET /caf%C3%A9/a%2Fb/{x}", "GET /only/{x=this}",
    "GET /before/{x=a/*}/**", "* /any/{x}", "PUT /any/{x}", "HEAD /head/{x}", "GET /head/{x}", "GET /",
  ]);

  // oxfmt-ignore
  test.each([
    ["GET /v1/me", "GET /v1/me", []], ["GET /v1/{a}", "GET /v1/you", ["you"]],
    ["DELETE /v1/{a}", "DELETE /v1/me", ["me"]], ["GET /v1/me/y/z", "GET /v1/me/y/z", []],
    ["GET /v1/{a}/x/{b}", "GET /v1/me/x/z", ["me", "z"]], ["GET /v1/{rest=**}", "GET /v1/me/y", ["me/y"]],
    ["GET /v1/{rest=**}", "GET /v1", [""]], ["GET /v1/{rest=**}", "GET /v1/", [""]],
    ["GET /v1/{rest=**}", "GET /v1/a//b/", ["a//b/"]], ["GET /v1/me", "HEAD /v1/me", []],
    ["HEAD /head/{x}", "HEAD /head/a", ["a"]], ["GET /head/{x}", "GET /head/a", ["a"]],
    ["POST /v1/{a}:close", "POST /v1/a:close", ["a"]], ["POST /v1/{a}:close", "POST /%76%31/a:close", ["a"]],
    ["POST /v1/{a}:close", "POST /v1/a:b:close", ["a:b"]],
    ["POST /v1/{a}:open", "POST /v1/a%3Aclose:open", ["a:close"]], ["POST /v1/{a}:close", "POST /v1/a:cl%6Fse", ["a"]],
    ["GET /v1/{a}", "GET /v1/a:close", ["a:close"]], ["GET /v1/{a}", "GET /v1/a:b", ["a:b"]],
    ["GET /v1/{a}", "GET /v1/a%3Aclose", ["a:close"]], ["GET /v1/orders:count", "GET /v1/orders:count", []],
    ["GET /v1/{a}", "GET /v1/weeds:count", ["weeds:count"]], ["GET /v1/{a}", "GET /v1/a%2Fb", ["a/b"]],
    ["GET /v1/{a}", "GET /v1/a%252Fb", ["a%2Fb"]], ["GET /v1/{a}", "GET /v1/a+b", ["a+b"]],
    ["GET /v1/{a}", "GET /v1/%F0%9F%8C%B1", ["🌱"]], ["GET /v1/{a}", "GET /v1/a;x=1", ["a;x=1"]],
    ["GET /v1/{a}", "GET /v1/...", ["..."]], ["GET /v1/{a}", "GET /v1/.a", [".a"]],
    ["GET /v1/{a}", "GET /v1/%00", ["\0"]], ["GET /v1/me", "GET /%76%31/m%65", []],
    ["GET /files/{path=**}/{last}", "GET /files/a/b", ["a", "b"]],
    ["GET /files/{path=**}/{last}", "GET /files/b", ["", "b"]], ["GET /files/{path=**}", "GET /files", [""]],
    ["GET /files/{path=**}/info", "GET /files/a/b/info", ["a/b"]],
    ["GET /files/{path=**}/info", "GET /files/info", [""]],
    ["GET /files/{path=**}/info", "GET /files/info/info", ["info"]], ["GET /files/{path=**}", "GET /files/a/", ["a/"]],
    ["POST /files/{path=**}:archive", "POST /files/a/b:archive", ["a/b"]],
    ["POST /files/{path=**}:archive", "POST /files/a%2Fb%2fc%25:archive", ["a%2Fb%2fc%"]],
    ["POST /files/{path=**}:archive", "POST /files/:archive", [""]], ["GET /v1/{a}", "GET /v1/:count", [":count"]],
    ["GET /v1/{a}", "GET /v1/:", [":"]], ["POST /files/{path=**}:archive", "POST /files:archive", [""]],
    ["GET /shelves/{name=shelves/*/books/*}", "GET /shelves/shelves/1%2F2/books/a%20b", ["shelves/1%2F2/books/a b"]],
    ["GET /one/*/end", "GET /one/a/end", []], ["GET /caf%C3%A9/a%2Fb/{x}", "GET /caf%c3%a9/a%2fb/1", ["1"]],
    ["GET /only/{x=this}", "GET /only/this", ["this"]], ["GET /before/{x=a/*}/**", "GET /before/a/1/2/3", ["a/1"]],
    ["PUT /any/{x}", "PUT /any/a", ["a"]], ["* /any/{x}", "GET /any/a", ["a"]], ["* /any/{x}", "BREW /any/a", ["a"]],
    ["GET /", "GET /", []],
  ])("returns the route %s for %s", (route, request, captures) => {
    const [httpMethod = "", path = ""] = request.split(" ");
    expect(table.match(httpMethod, path)).toEqual({ kind: "binding", binding: route, captures });
  });

  test.each([
    { request: "GET /nowhere", why: "no literal equals it" },
    { request: "GET //v1/me", why: "the first segment is empty" },
    { request: "GET /one//end", why: "a wildcard does not match an empty segment" },
    { request: "GET /one/a/end/", why: "a trailing slash adds a segment" },
    { request: "GET /any/", why: "a wildcard does not match an empty segment" },
    { request: "GET /One/a/end", why: "paths are case-sensitive" },
    { request: "GET /caf%C3%A9/a/b/1", why: "an escaped slash in a literal does not separate segments" },
    { request: "POST /v1/:close", why: "a verb needs a value before it" },
    { request: "GET /v1/:close", why: "a verb needs a value before it, even if only another method has the verb" },
    { request: "GET /%76%31/:close", why: "a verb needs a value before it, even if the path is escaped" },
    { request: "GET /files/:archive", why: "a verb needs a value before it, even after **" },
    { request: "GET /only/that", why: "the variable requires a literal" },
    { request: "GET /shelves/shelves/1/books", why: "a segment is missing" },
    { request: "GET /v1/./me", why: 'it has a segment "."' },
    { request: "GET /v1/a/../me", why: 'it has a segment ".."' },
    { request: "GET /v1/%2e%2E/me", why: 'it has an escaped segment ".."' },
    { request: "GET /files/..", why: 'it ends in a segment ".."' },
    { request: "GET *", why: "it is not a path" },
    { request: "GET ", why: "it is empty" },
    { request: "GET http://host/v1/me", why: "it is a complete URL" },
  ])("returns no route for $request ($why)", ({ request }) => {
    const [httpMethod = "", path = ""] = request.split(" ");
    expect(table.match(httpMethod, path)).toEqual(notFound);
  });

  test.each([
    { request: "POST /v1/me", allow: ["DELETE", "GET", "HEAD"] },
    { request: "PATCH /v1/a:close", allow: ["DELETE", "GET", "HEAD", "POST"] },
    { request: "OPTIONS /", allow: ["GET", "HEAD"] },
    { request: "get /one/a/end", allow: ["GET", "HEAD"] },
    { request: "DELETE /files/a/b", allow: ["GET", "HEAD"] },
  ])("responds to $request with the allowed methods", ({ request, allow }) => {
    const [httpMethod = "", path = ""] = request.split(" ");
    expect(table.match(httpMethod, path)).toEqual({ kind: "method-not-allowed", allow: allow.join(", ") });
  });

  test.each([
    { path: "/v1/%", why: "an escape is truncated" },
    { path: "/v1/%2", why: "an escape is truncated after one digit" },
    { path: "/v1/%zz", why: "an escape is not hexadecimal" },
    { path: "/v1/%ff", why: "the bytes are not UTF-8" },
    { path: "/v1/%c3", why: "a UTF-8 sequence is truncated" },
    { path: "/v1/%c3/%a9", why: "a UTF-8 sequence is split by a slash" },
    { path: "/v1/%c0%80", why: "the UTF-8 is overlong" },
    { path: "/v1/%ed%a0%80", why: "the UTF-8 is a surrogate" },
    { path: "/v1/a b", why: "a space is not escaped" },
    { path: "/v1/a\tb", why: "a tab is not escaped" },
    { path: "/v1/a\u0000", why: "a NUL is not escaped" },
    { path: "/v1/a\u007f", why: "DEL is not escaped" },
    { path: "/v1/\u00e9", why: "a byte is beyond ASCII" },
    { path: "/v1/a#b", why: "the path has a number sign" },
    { path: "/nowhere/%zz", why: "an escape on an unknown path is not valid" },
  ])("rejects $path as malformed ($why)", ({ path }) => {
    expect(table.match("GET", path)).toMatchObject({ kind: "malformed" });
  });

  test("add() returns an existing route with the same method and template", () => {
    const both = tableOf(["GET /a/{x}", "PUT /a/{y}", "GET /a/{x}:v"]);
    expect(both.add("GET", parsePathTemplate("/a/{z=*}"), "new")).toBe("GET /a/{x}");
    expect(both.match("GET", "/a/1")).toMatchObject({ binding: "GET /a/{x}" });
  });

  test.each([
    { decodesSlash: false, captures: ["x/a%2Fb%41", "c/d"] },
    { decodesSlash: true, captures: ["x/a/b%41", "c/d"] },
  ])("captures {**} and the next variable (decodesSlash: $decodesSlash)", ({ decodesSlash, captures }) => {
    const only = new RouteTable<string>(decodesSlash);
    only.add("GET", parsePathTemplate("/{front=**}/end/{last}"), "route");
    expect(only.match("GET", "/x/a%2Fb%2541/end/c%2Fd")).toEqual({ kind: "binding", binding: "route", captures });
  });

  test("matches a path of 100,000 segments within the test timeout", () => {
    const deep = tableOf(["GET /{a=**}/x", "GET /{a=**}/x/y", "GET /*/*/*/{a=**}/z"]);
    const path = "/x".repeat(100_000);
    expect(deep.match("GET", path)).toMatchObject({ binding: "GET /{a=**}/x" });
    expect(deep.match("GET", `${path}/w`)).toEqual(notFound);
  });
});

// Returns the most specific route that matches, by converting each template to a regular expression.
function naive(routes: readonly string[], httpMethod: string, given: string): string | undefined {
  const candidates = routes.filter((each) => {
    const [routeMethod, text = ""] = each.split(" ");
    const source = text
      .replaceAll("/**", "(?:/[^/]+)#")
      .replaceAll(/\{x\d\}|(?<=\/)\*/g, "[^/]+")
      .replaceAll("#", "*");
    return routeMethod === httpMethod && new RegExp(`^${source}$`).test(given);
  });
  return candidates.toSorted((one, other) => (exactness(one) < exactness(other) ? -1 : 1))[0];
}

// A route with a verb wins. Then, segment by segment, a literal wins over "*", which wins over "**".
function exactness(each: string): string {
  const text = each.slice(each.indexOf(" ") + 2);
  const hasVerb = text.endsWith(":v");
  const segments = (hasVerb ? text.slice(0, -2) : text).split("/");
  const ranks = segments.map((segment) => (segment === "**" ? "2" : /^[*{]/.test(segment) ? "1" : "0"));
  return `${hasVerb ? 0 : 1}${ranks.join("")}`;
}

describe("RouteTable", () => {
  const word = fc.constantFrom("a", "b", "c", "a:v", "v");
  const templateSegment = fc.constantFrom("a", "b", "c", "*", "{x}");
  const template = fc
    .tuple(
      fc.array(templateSegment, { minLength: 1, maxLength: 4 }),
      fc.constantFrom("", "**"),
      fc.constantFrom("", ":v"),
    )
    .map(([segments, rest, verb]) => {
      const named = segments.map((segment, at) => (segment === "{x}" ? `{x${at}}` : segment));
      return `/${[...named, ...(rest === "" ? [] : [rest])].join("/")}${verb}`;
    });
  const route = fc.tuple(fc.constantFrom("GET", "PUT"), template).map(([httpMethod, text]) => `${httpMethod} ${text}`);
  const path = fc.array(word, { minLength: 1, maxLength: 6 }).map((words) => `/${words.join("/")}`);

  test("finds the same routes as a linear search in any declaration order", () =>
    fc.assert(
      fc.property(
        fc.array(route, { maxLength: 12 }),
        fc.array(path, { minLength: 1, maxLength: 6 }),
        (given, paths) => {
          const table = new RouteTable<string>();
          const added = given.filter((each) => {
            const [httpMethod = "", text = ""] = each.split(" ");
            return table.add(httpMethod, parsePathTemplate(text), each) === undefined;
          });
          for (const httpMethod of ["GET", "PUT"]) {
            for (const each of paths) {
              const match = table.match(httpMethod, each);
              expect(match.kind === "binding" ? match.binding : undefined, `${httpMethod} ${each}`).toBe(
                naive(added, httpMethod, each),
              );
            }
          }
        },
      ),
      { numRuns: numRunsOf(500) },
    ));
});
