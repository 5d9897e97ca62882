import type { DescService } from "@bufbuild/protobuf";
import { METHODS } from "node:http";
import { describe, expect, test } from "vitest";
import { StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { ExternalHttpRule, RouteConstraints } from "../../../../src/protocols/rest/rules/index.ts";
import { compileRestRoutes, parseHttpRules } from "../../../../src/protocols/rest/rules/index.ts";
import { Health } from "../../../../src/health/index.ts";
import { OrderService } from "../../../../../testing/src/gen/orders/v1/orders_pb.ts";
import { KitchenSink } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { Shelves } from "../../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";

const { unbound } = KitchenSink.method;

function fail(): never {
  throw new RangeError("no such service");
}

// node's parser supports these methods, except CONNECT, which never becomes a request.
const parsedMethods = new Set(METHODS.filter((name) => name !== "CONNECT"));
const unboundSelector = "kitchensink.v1.KitchenSink.Unbound";

// Parses a rule from "METHOD template [body=…] [response_body=…]".
function ruleOf(
  text: string,
  additionalBindings: ExternalHttpRule[] = [],
  selector = unboundSelector,
): ExternalHttpRule {
  const [kind = "", path = "", ...settings] = text.split(" ");
  const setting = (name: string): string => settings.find((each) => each.startsWith(`${name}=`))?.split("=")[1] ?? "";
  return {
    selector,
    pattern: { case: "custom", value: { kind, path } },
    body: setting("body"),
    responseBody: setting("response_body"),
    additionalBindings,
  };
}

// Returns the problems with one RPC's rules, without its name.
function problemsOf(
  [first = "", ...additional]: readonly string[],
  constraints: RouteConstraints = {},
): readonly string[] {
  const rule = ruleOf(
    first,
    additional.map((each) => ruleOf(each)),
  );
  try {
    compileRestRoutes([unbound], { rules: [rule] }, constraints);
  } catch (error) {
    const [head, ...problems] = String(error).split("\n");
    expect(head).toBe("Error: invalid HTTP rules:");
    return problems.map((problem) => problem.replaceAll(`${unboundSelector}: `, ""));
  }
  return [];
}

const notSingle = (name: string): string => `path variable "${name}" must not be a repeated field, a map or a message`;
const usedPath = "the path is already used by an RPC or an endpoint";
const noRpc = (selector: string): string => `selector "${selector}" does not match an RPC`;
type Refusal = [why: string, rules: readonly string[], want: string];

describe("compileRestRoutes()", () => {
  test.each<Refusal>(
    // oxfmt-ignore
    [
      ["a template that does not parse", ["GET /a/{"],
        'GET /a/{: path template "/a/{": expected a field name at character 5'],
      ["an unknown path field", ["GET /a/{nope}"], 'path variable "nope" is not a field of kitchensink.v1.Sink'],
      ["a path field by its JSON name", ["GET /a/{fString}"],
        'path variable "fString" is not a field of kitchensink.v1.Sink'],
      ["a body by its JSON name", ["POST /a body=fString"], 'body "fString" is not a field of kitchensink.v1.Sink'],
      ["an unknown nested field in a path", ["GET /a/{nested.nope}"],
        'path variable "nested.nope" is not a field of kitchensink.v1.Sink'],
      ["a nested field of a scalar in a path", ["GET /a/{f_string.x}"], 'path variable "f_string.x" is not a field'],
      ["a field of a repeated field in a path", ["GET /a/{nesteds.text}"],
        'path variable "nesteds.text" is not a field'],
      ["a repeated path field", ["GET /a/{ids}"], notSingle("ids")],
      ["a map as a path field", ["GET /a/{labels}"], notSingle("labels")],
      ["a message as a path field", ["GET /a/{nested}"], notSingle("nested")],
      ["a Struct as a path field", ["GET /a/{struct}"], notSingle("struct")],
      ["an unknown body field", ["POST /a body=nope"], 'body "nope" is not a field of kitchensink.v1.Sink'],
      ["a nested body field", ["POST /a body=nested.text"], 'body "nested.text" is not a field'],
      ["a body field that the path also binds", ["POST /a/{f_string} body=f_string"],
        'body must not be a field that the path binds, got "f_string"'],
      ["an unknown response_body", ["GET /a response_body=nope"],
        'response_body "nope" is not a field of kitchensink.v1.Echo'],
      ["a custom kind that is not a method", ["GE/T /a"], 'custom kind must be an HTTP method, got "GE/T"'],
      ["an empty custom kind", [" /a"], 'custom kind must be an HTTP method, got ""'],
      ["two rules that match the same requests", ["GET /a/{f_string}", "GET /a/{f_int64}"],
        "GET /a/{f_int64}: matches the same requests as GET /a/{f_string}"],
      ["two rules that differ only in escapes", ["GET /a", "GET /%61"],
        "GET /%61: matches the same requests as GET /a"],
      ["a rule with the path of an RPC", ["POST /kitchensink.v1.KitchenSink/Unbound"], usedPath],
      ["a rule with the escaped path of an RPC", ["POST /kitchensink.v1.KitchenSink/%55nbound"], usedPath],
      ...["ARCHIVE", "get", "CONNECT"].map((kind): Refusal => [
        `the custom kind ${kind}, which the HTTP/1.1 parser rejects`,
        [`${kind} /a`],
        "the HTTP/1.1 parser does not accept this method",
      ]),
      ...["f_int64=a/*", "f_bool=a/**", "f_enum=*/*", "time=a", "w_double=*/a/**", "f_bytes=a-b!/*"].map(
        (variable): Refusal => [
          `a template whose variable {${variable}} can never match a value of its field`,
          [`GET /a/{${variable}}`],
          `path variable "${variable.split("=")[0]}" can never match a value of its field`,
        ],
      ),
      ["a rule that other rules shadow", ["GET /{f_string=**}/end", "GET /{f_string}/**", "GET /end"],
        "GET /{f_string=**}/end: is never reached because "],
    ],
  )("refuses %s", (_, rules, want) => {
    const problems = problemsOf(rules, { parsedMethods });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(want);
  });

  test("refuses a rule without a pattern", () =>
    expect(() => compileRestRoutes([unbound], { rules: [{ selector: unboundSelector }] })).toThrow(
      "a binding must have a method and a path",
    ));

  test("refuses additional bindings inside additional bindings", () => {
    const rule = ruleOf("GET /a", [ruleOf("GET /b", [ruleOf("GET /c")])]);
    expect(() => compileRestRoutes([unbound], { rules: [rule] })).toThrow("additional_bindings must not be nested");
  });

  test("refuses a client-streaming RPC without a body", () => {
    const rules = [ruleOf("GET /watch", [], "grpc.health.v1.Health.Watch")];
    const method = { ...Health.method.watch, methodKind: "bidi_streaming" } as const;
    expect(() => compileRestRoutes([method], { rules })).toThrow("a client-streaming RPC must have a body");
  });

  test.each([
    { name: "google.protobuf.Struct messages", output: StructSchema },
    { name: "google.protobuf.Value messages", output: ValueSchema },
  ])("refuses a stream of $name without streamInResults", ({ output }) => {
    const rules = [ruleOf("GET /watch", [], "grpc.health.v1.Health.Watch")];
    const method = { ...Health.method.watch, output };
    expect(() => compileRestRoutes([method], { rules })).toThrow("could be mistaken for an error");
    expect(() => compileRestRoutes([method], { rules, service: () => ({ streamInResults: true }) })).not.toThrow();
  });

  test("refuses the path of an endpoint", () =>
    expect(problemsOf(["GET /livez"], { reservedPaths: ["/livez"] })).toEqual([
      "GET /livez: the path is already used by an RPC or an endpoint",
    ]));

  const noPaths = ["api", "/api/", "/", "//api", "/a b", "/a?b", "/a#b", "/a/../b", "/%zz", "/%ff", "/é"];
  // Not pchar, so a path may only have them as escapes (RFC 3986 §3.3).
  const noPathCharacters = ["/{x}", "/a\\b", '/a"b', "/a^b", "/a`b", "/a|b", "/<a>", "/[a]"];
  test.each([...noPaths, ...noPathCharacters])("refuses %s as the requestPathPrefix", (requestPathPrefix) => {
    expect(problemsOf(["GET /a"], { requestPathPrefix })).toEqual([
      `requestPathPrefix must be a path such as "/api", got "${requestPathPrefix}"`,
    ]);
  });

  test.each(["/api", "/api/v1", "/%61pi", "/a%2Fb", "/api:verb", "/*", "/a;b=1", "/~a-b._!$&'()+,@"])(
    "accepts %s as the requestPathPrefix",
    (requestPathPrefix) => expect(problemsOf(["GET /a"], { requestPathPrefix })).toEqual([]),
  );

  test("names each selector that is not an RPC", () => {
    const rules = ["x.Y.Z", "orders.v1.OrderService"].map((each) => ruleOf("GET /a", [], each));
    expect(() => compileRestRoutes([unbound], { rules })).toThrow(
      'rules: selector "x.Y.Z" does not match an RPC\nselector "orders.v1.OrderService" does not match an RPC',
    );
  });

  const typos = "kitchensink.v1.KitchenSink.Typos";
  test.each([
    ["accepts an RPC of an unregistered service", "google.longrunning.Operations.GetOperation", undefined],
    ["accepts another RPC of the service", "kitchensink.v1.KitchenSink.Types", undefined],
    ["refuses an RPC that does not exist", typos, noRpc(typos)],
  ])("%s in the rules with ignoreUnregistered", (_name, selector, want) => {
    const rules = [unboundSelector, selector].map((each) => ruleOf("GET /a", [], each));
    const compile = () => compileRestRoutes([unbound], { rules, ignoreUnregistered: true });
    if (want === undefined) expect(compile().bindings).toHaveLength(1);
    else expect(compile).toThrow(want);
    expect(() => compileRestRoutes([unbound], { rules })).toThrow(noRpc(selector));
  });

  test("refuses an unknown selector next to a known one", () => {
    const rules = ["x.Y.Z", unboundSelector].map((each) => ruleOf("GET /a", [], each));
    expect(() => compileRestRoutes([unbound], { rules })).toThrow('rules: selector "x.Y.Z" does not match an RPC');
  });

  test.each<[name: string, service: () => unknown, message: string]>(
    // oxfmt-ignore
    [
      ["a misspelled option name", () => ({ lenint: true }), 'unknown option "lenint", did you mean "lenient"?'],
      ["a function instead of a value", () => ({ lenient: () => true }),
        "lenient of rest.service of kitchensink.v1.KitchenSink must be a boolean, got function"],
      ["a string instead of an array", () => ({ ignoredQueryParameters: "utm_*" }),
        "ignoredQueryParameters of rest.service of kitchensink.v1.KitchenSink must be an array, got string"],
      ["undefined instead of options", () => undefined,
        "rest.service of kitchensink.v1.KitchenSink requires an object of options, got undefined"],
    ],
  )("refuses service options with %s", (_name, service, message) => {
    const options: object = { rules: [ruleOf("GET /a")], service };
    const error = Object.assign(new TypeError(message), { code: "ERR_OPTIONS" });
    expect(() => compileRestRoutes([unbound], options)).toThrow(error);
  });

  test("rethrows an error of rest.service", () => {
    const service = fail;
    expect(() => compileRestRoutes([unbound], { rules: [ruleOf("GET /a")], service })).toThrow(
      new RangeError("no such service"),
    );
  });

  test("reports the problems of all rules in one error", () =>
    expect(problemsOf(["GET /a/{nope}", "GET /a//b", "POST /a body=nope", "GET /b", "GET /b"])).toHaveLength(4));
});

test("compileRestRoutes() calls rest.service once per service", () => {
  const asked: string[] = [];
  const service = ({ typeName }: DescService): object => {
    asked.push(typeName);
    return { streamInResults: undefined, grpcMetadata: true };
  };
  const { bindings } = compileRestRoutes([...KitchenSink.methods, ...Shelves.methods], { service });
  expect(asked).toEqual([KitchenSink.typeName, Shelves.typeName]);
  expect(
    new Set(bindings.map(({ options }) => [options.streamForms.fallback.kind, options.grpcMetadata].join())),
  ).toEqual(new Set(["lines,true"]));
});

describe("compileRestRoutes() with valid rules", () => {
  test.each<[why: string, rules: readonly string[]]>(
    // oxfmt-ignore
    [
      ["rules that overlap",
        ["GET /a/b", "GET /a/{f_string}", "GET /{f_string=**}", "GET /{f_string}/b", "GET /a/{f_string=**}"]],
      ["segments after **", ["GET /{f_string=**}/end", "GET /{f_string=**}/{nested.text}", "GET /{f_string=**}"]],
      ["a rule whose shortest paths match other rules",
        ["GET /a/**", "GET /a", "GET /a/{f_string}", "GET /a/{f_string}/{nested.text}"]],
      ["a wildcard next to literals", ["GET /x", "GET /xx", "GET /undefined", "GET /%2A", "GET /*"]],
      ["verbs after a variable", ["GET /a/{f_string}", "GET /a/{f_string}:b", "GET /a:b", "GET /{f_string=**}:b"]],
      ["one path for many methods", ["GET /a", "PUT /a", "* /a", "HEAD /a"]],
      ["the path of an RPC with a verb", ["GET /kitchensink.v1.KitchenSink/Unbound:x"]],
      ["a template that covers RPC paths and more",
        ["POST /{f_string=**}", "POST /kitchensink.v1.KitchenSink/Unbound/*"]],
      ["a variable of each scalar type",
        ["GET /a/{f_int64=**}", "GET /b/{f_enum=*/**}", "GET /c/{f_enum=COLOR_RED/**}", "GET /d/{f_bool=**/true}",
          "GET /e/{f_bytes=a/*/*/*/*}", "GET /i/{f_bytes=a/**}", "GET /f/{f_int64=7}", "GET /g/{f_string=a/*}",
          "GET /h/{mask=*}/{time=*}/{duration=*}/{f_double=*}/{w_bool=*}"]],
      ["custom kinds", ["PROPFIND /a", "M-SEARCH /a", "OPTIONS /a", "* /a"]],
      ["body fields with and without nested path fields", ["PUT /a body=nested", "PUT /b/{nested.text} body=nested"]],
    ],
  )("accepts %s", (_, rules) => {
    expect(problemsOf(rules, { parsedMethods, requestPathPrefix: "/api/v1%20" })).toEqual([]);
  });

  test("reads the annotations of a generated service", () => {
    const { bindings } = compileRestRoutes(KitchenSink.methods);
    expect(bindings.length).toBeGreaterThan(60);
    expect(bindings.every((binding) => binding.procedure.startsWith("/kitchensink.v1.KitchenSink/"))).toBe(true);
  });

  test("skips RPCs without a rule", () => expect(compileRestRoutes([unbound]).bindings).toEqual([]));
});

describe("compileRestRoutes() with external rules", () => {
  const selector = "orders.v1.OrderService.DeleteOrder";
  const last = { selector, post: "/v2/{id}:remove", body: "*", additionalBindings: [{ delete: "/v2/{id}" }] };
  const rules = parseHttpRules(JSON.stringify({ rules: [{ selector, delete: "/never/{id}" }, last] }));
  const routes = compileRestRoutes(OrderService.methods, { rules });

  test.each([
    { request: "POST /v2/7:remove", kind: "binding" },
    { request: "DELETE /v2/7", kind: "binding" },
    { request: "DELETE /orders/7", kind: "not-found" },
    { request: "DELETE /never/7", kind: "not-found" },
  ])("routes $request by the last rule, not by the annotation", ({ request, kind }) => {
    const [httpMethod = "", path = ""] = request.split(" ");
    expect(routes.match(httpMethod, path).kind).toBe(kind);
  });

  test("rejects rules that are not google.api.Http", () =>
    expect(() => parseHttpRules('{"rules":[{"selector":"a","gett":"/b"}]}')).toThrow('unknown field "rules[0].gett"'));
});

// The rules in googleapis/gapic-showcase's compliance.proto (schema/google/showcase/v1beta1), with kitchen sink fields
// instead of the original's. Info is child, f_kingdom is f_enum.
describe("gapic-showcase's compliance service", () => {
  const repeat = "/v1beta1/repeat";
  const [first, ...others] = [
    `POST ${repeat}:body body=*`,
    `POST ${repeat}:bodyinfo body=child`,
    `GET ${repeat}:query`,
    `GET ${repeat}/{child.f_string}/{child.f_int32}/{child.f_double}/{child.f_bool}/{child.f_enum}:simplepath`,
    `GET ${repeat}/{child.f_string=first/*}/{child.child.f_string=second/*}/bool/{child.f_bool}:pathresource`,
    `GET ${repeat}/{child.f_string=first/*}/{child.child.f_string=second/**}:pathtrailingresource`,
  ];
  const additional = others.map((each) => ruleOf(each));
  const routes = compileRestRoutes([unbound], { rules: [ruleOf(first, additional)] });

  test.each([
    ["POST /v1beta1/repeat:body", []],
    ["POST /v1beta1/repeat:bodyinfo", []],
    ["GET /v1beta1/repeat:query", []],
    ["GET /v1beta1/repeat/a/-1/0.5/true/COLOR_RED:simplepath", ["a", "-1", "0.5", "true", "COLOR_RED"]],
    ["GET /v1beta1/repeat/first/a/second/b/bool/true:pathresource", ["first/a", "second/b", "true"]],
    ["GET /v1beta1/repeat/first/a/second/b/c:pathtrailingresource", ["first/a", "second/b/c"]],
    ["GET /v1beta1/repeat/first/a/second:pathtrailingresource", ["first/a", "second"]],
  ])("routes %s to its rule", (request, captures) => {
    const [httpMethod = "", path = ""] = request.split(" ");
    expect(routes.match(httpMethod, path)).toMatchObject({ kind: "binding", captures });
  });
});

describe("RestRoutes.match()", () => {
  const routes = compileRestRoutes(OrderService.methods);

  test("returns the binding, its RPC and the captures", () => {
    const match = routes.match("DELETE", "/orders/7");
    expect(match).toMatchObject({ kind: "binding", captures: ["7"] });
    expect(match.kind === "binding" && match.binding.procedure).toBe("/orders.v1.OrderService/DeleteOrder");
  });

  test("returns the allowed methods as the value of Allow", () => {
    const want = { kind: "method-not-allowed", allow: "DELETE, GET, HEAD" };
    expect(compileRestRoutes(KitchenSink.methods).match("PATCH", "/v1/match/me")).toEqual(want);
  });

  test("decodes escaped slashes in multi-segment variables with fullyDecodeReservedExpansion", () => {
    const options = { rules: [ruleOf("GET /{f_string=a/*}")], fullyDecodeReservedExpansion: true };
    expect(compileRestRoutes([unbound], options).match("GET", "/a/b%2Fc%252F")).toMatchObject({
      captures: ["a/b/c%2F"],
    });
  });
});
