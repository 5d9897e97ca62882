import type { DescMethod } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import type { OutsideHttpRule, RestRouterOptions } from "../../../src/gateway/rest/index.ts";
import { createRestRouter, parseHttpRules } from "../../../src/gateway/rest/index.ts";
import { Health } from "../../../src/gen/es/grpc/health/v1/health_pb.ts";
import { PlantService } from "../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { KitchenSink } from "../../gen/kitchensink/v1/kitchen_sink_pb.ts";

const { unbound } = KitchenSink.method;
const unboundSelector = "kitchensink.v1.KitchenSink.Unbound";

// A rule as "METHOD template [body=…] [response_body=…]".
function ruleOf(text: string, additionalBindings: OutsideHttpRule[] = [], selector = unboundSelector): OutsideHttpRule {
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

// The problems of one RPC's rules, each without the name of the RPC in front.
function problemsOf(
  [first = "", ...additional]: readonly string[],
  options: RestRouterOptions = {},
  methods: readonly DescMethod[] = [unbound],
): readonly string[] {
  try {
    createRestRouter(methods, {
      rules: [
        ruleOf(
          first,
          additional.map((each) => ruleOf(each)),
        ),
      ],
      ...options,
    });
  } catch (error) {
    const [head, ...problems] = String(error).split("\n");
    expect(head).toBe("Error: the HTTP rules have problems:");
    return problems.map((problem) => problem.replaceAll(`${unboundSelector}: `, ""));
  }
  return [];
}

describe("createRestRouter() refuses", () => {
  test.each<{ why: string; rules: readonly string[]; want: string }>([
    {
      why: "a template that does not parse",
      rules: ["GET /a/{"],
      want: 'GET /a/{: path template "/a/{" wants a field name at character 5',
    },
    {
      why: "an unknown path field",
      rules: ["GET /a/{nope}"],
      want: 'path variable "nope" is no field of kitchensink.v1.Sink',
    },
    {
      why: "a path field by its JSON name",
      rules: ["GET /a/{fString}"],
      want: 'path variable "fString" is no field of kitchensink.v1.Sink',
    },
    {
      why: "a body by its JSON name",
      rules: ["POST /a body=fString"],
      want: 'body "fString" is no field of kitchensink.v1.Sink',
    },
    {
      why: "an unknown field in a path field",
      rules: ["GET /a/{nested.nope}"],
      want: 'path variable "nested.nope" is no field',
    },
    { why: "a path through a scalar", rules: ["GET /a/{f_string.x}"], want: 'path variable "f_string.x" is no field' },
    {
      why: "a path through a list",
      rules: ["GET /a/{nesteds.text}"],
      want: 'path variable "nesteds.text" is no field',
    },
    {
      why: "a repeated path field",
      rules: ["GET /a/{ids}"],
      want: 'path variable "ids" is repeated, a map or a message',
    },
    {
      why: "a map as a path field",
      rules: ["GET /a/{labels}"],
      want: 'path variable "labels" is repeated, a map or a message',
    },
    {
      why: "a message as a path field",
      rules: ["GET /a/{nested}"],
      want: 'path variable "nested" is repeated, a map or a message',
    },
    {
      why: "a Struct as a path field",
      rules: ["GET /a/{struct}"],
      want: 'path variable "struct" is repeated, a map or a message',
    },
    { why: "an unknown body", rules: ["POST /a body=nope"], want: 'body "nope" is no field of kitchensink.v1.Sink' },
    { why: "a nested body", rules: ["POST /a body=nested.text"], want: 'body "nested.text" is no field' },
    {
      why: "a body that the path binds",
      rules: ["POST /a/{f_string} body=f_string"],
      want: 'body "f_string" is a field that the path binds',
    },
    {
      why: "an unknown response_body",
      rules: ["GET /a response_body=nope"],
      want: 'response_body "nope" is no field of kitchensink.v1.Echo',
    },
    { why: "a kind that is no method", rules: ["GE/T /a"], want: 'custom kind "GE/T" is no HTTP method' },
    { why: "an empty kind", rules: [" /a"], want: 'custom kind "" is no HTTP method' },
    {
      why: "the same rule twice",
      rules: ["GET /a/{f_string}", "GET /a/{f_int64}"],
      want: "GET /a/{f_int64}: is the same as GET /a/{f_string}",
    },
    { why: "the same rule twice in escapes", rules: ["GET /a", "GET /%61"], want: "GET /%61: is the same as GET /a" },
    {
      why: "the path of an RPC",
      rules: ["POST /kitchensink.v1.KitchenSink/Unbound"],
      want: "has the path of an RPC or an endpoint",
    },
    {
      why: "the path of an RPC in escapes",
      rules: ["POST /kitchensink.v1.KitchenSink/%55nbound"],
      want: "has the path of an RPC or an endpoint",
    },
    {
      why: "a rule that others shadow",
      rules: ["GET /{f_string=**}/end", "GET /{f_string}/**", "GET /end"],
      want: "GET /{f_string=**}/end: is never reached",
    },
  ])("$why", ({ rules, want }) => {
    const problems = problemsOf(rules);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(want);
  });

  test("a rule without a pattern", () => {
    expect(() => createRestRouter([unbound], { rules: [{ selector: unboundSelector }] })).toThrow(
      "a binding has no method and path",
    );
  });

  test("additional bindings inside of additional bindings", () => {
    const rule = ruleOf("GET /a", [ruleOf("GET /b", [ruleOf("GET /c")])]);
    expect(() => createRestRouter([unbound], { rules: [rule] })).toThrow("additional_bindings are nested");
  });

  test("a rule on a streaming RPC", () => {
    const rules = [ruleOf("GET /watch", [], "grpc.health.v1.Health.Watch")];
    expect(() => createRestRouter(Health.methods, { rules })).toThrow("is a streaming RPC");
  });

  test("the path of an endpoint", () => {
    expect(problemsOf(["GET /livez"], { reservedPaths: ["/livez"] })).toEqual([
      "GET /livez: has the path of an RPC or an endpoint",
    ]);
  });

  test("a selector that is no RPC, naming each", () => {
    const rules = ["x.Y.Z", "plantstore.v1.PlantService"].map((each) => ruleOf("GET /a", [], each));
    expect(() => createRestRouter([unbound], { rules })).toThrow(
      'rules: selector "x.Y.Z" is no RPC\nselector "plantstore.v1.PlantService" is no RPC',
    );
  });

  test("with all problems at once", () => {
    expect(problemsOf(["GET /a/{nope}", "GET /a//b", "POST /a body=nope", "GET /b", "GET /b"])).toHaveLength(4);
  });
});

describe("createRestRouter() takes", () => {
  test.each<{ why: string; rules: readonly string[] }>([
    {
      why: "rules that overlap",
      rules: ["GET /a/b", "GET /a/{f_string}", "GET /{f_string=**}", "GET /{f_string}/b", "GET /a/{f_string=**}"],
    },
    {
      why: "segments behind **",
      rules: ["GET /{f_string=**}/end", "GET /{f_string=**}/{nested.text}", "GET /{f_string=**}"],
    },
    {
      why: "verbs beside a variable",
      rules: ["GET /a/{f_string}", "GET /a/{f_string}:b", "GET /a:b", "GET /{f_string=**}:b"],
    },
    { why: "one path for many methods", rules: ["GET /a", "PUT /a", "* /a", "HEAD /a"] },
    { why: "the path of an RPC with a verb", rules: ["GET /kitchensink.v1.KitchenSink/Unbound:x"] },
    { why: "a template that covers RPC paths and more", rules: ["POST /{f_string=**}"] },
    {
      why: "a body with no path field, and one inside of it",
      rules: ["PUT /a body=nested", "PUT /b/{nested.text} body=nested"],
    },
  ])("$why", ({ rules }) => {
    expect(problemsOf(rules)).toEqual([]);
  });

  test("a service whose annotations were generated elsewhere", () => {
    const { bindings } = createRestRouter(KitchenSink.methods);
    expect(bindings.length).toBeGreaterThan(60);
    expect(bindings.every((binding) => binding.procedure.startsWith("/kitchensink.v1.KitchenSink/"))).toBe(true);
  });

  test("RPCs without a rule, and leaves them alone", () => {
    expect(createRestRouter([unbound]).bindings).toEqual([]);
  });
});

describe("createRestRouter() with rules from outside", () => {
  const rules = parseHttpRules(
    JSON.stringify({
      rules: [
        { selector: "plantstore.v1.PlantService.DeletePlant", delete: "/never/{id}" },
        {
          selector: "plantstore.v1.PlantService.DeletePlant",
          post: "/v2/{id}:remove",
          body: "*",
          additionalBindings: [{ delete: "/v2/{id}" }],
        },
      ],
    }),
  );
  const router = createRestRouter(PlantService.methods, { rules });

  test.each([
    { request: "POST /v2/7:remove", kind: "binding" },
    { request: "DELETE /v2/7", kind: "binding" },
    { request: "DELETE /plants/7", kind: "not-found" },
    { request: "DELETE /never/7", kind: "not-found" },
  ])("the last rule takes the place of the annotation: $request", ({ request, kind }) => {
    const [httpMethod = "", path = ""] = request.split(" ");
    expect(router.match(httpMethod, path).kind).toBe(kind);
  });

  test("refuses rules that are no google.api.Http", () => {
    expect(() => parseHttpRules('{"rules":[{"selector":"a","gett":"/b"}]}')).toThrow('unknown field "rules[0].gett"');
  });
});

// The rules of googleapis/gapic-showcase's compliance.proto (schema/google/showcase/v1beta1), with the fields of
// the kitchen sink in the places of its own: info is child, f_kingdom is f_enum.
describe("the rules of gapic-showcase's compliance service", () => {
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
  const router = createRestRouter([unbound], { rules: [ruleOf(first, additional)] });

  test.each([
    { request: "POST /v1beta1/repeat:body", captures: [] },
    { request: "POST /v1beta1/repeat:bodyinfo", captures: [] },
    { request: "GET /v1beta1/repeat:query", captures: [] },
    {
      request: "GET /v1beta1/repeat/a/-1/0.5/true/COLOR_RED:simplepath",
      captures: ["a", "-1", "0.5", "true", "COLOR_RED"],
    },
    {
      request: "GET /v1beta1/repeat/first/a/second/b/bool/true:pathresource",
      captures: ["first/a", "second/b", "true"],
    },
    { request: "GET /v1beta1/repeat/first/a/second/b/c:pathtrailingresource", captures: ["first/a", "second/b/c"] },
    { request: "GET /v1beta1/repeat/first/a/second:pathtrailingresource", captures: ["first/a", "second"] },
  ])("compile, and $request finds its own", ({ request, captures }) => {
    const [httpMethod = "", path = ""] = request.split(" ");
    expect(router.match(httpMethod, path)).toMatchObject({ kind: "binding", captures });
  });
});

describe("RestRouter.match()", () => {
  const router = createRestRouter(PlantService.methods);

  test("gives the binding, its RPC and what the path holds", () => {
    const match = router.match("DELETE", "/plants/7");
    expect(match).toMatchObject({ kind: "binding", captures: ["7"] });
    expect(match.kind === "binding" && match.binding.procedure).toBe("/plantstore.v1.PlantService/DeletePlant");
  });

  test("gives the methods that are allowed as the value of Allow", () => {
    expect(createRestRouter(KitchenSink.methods).match("PATCH", "/v1/match/me")).toEqual({
      kind: "method-not-allowed",
      allow: "DELETE, GET, HEAD",
    });
  });

  test("decodes an escaped slash in several segments where that is asked for", () => {
    const options = { rules: [ruleOf("GET /{f_string=a/*}")], fullyDecodeReservedExpansion: true };
    expect(createRestRouter([unbound], options).match("GET", "/a/b%2Fc%252F")).toMatchObject({
      captures: ["a/b/c%2F"],
    });
  });
});
