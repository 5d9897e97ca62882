// oxfmt-ignore
import { create, createFileRegistry, fromBinary, type MessageInitShape, toBinary, type UnknownField
} from "@bufbuild/protobuf";
import { FieldOptionsSchema, type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createOpenApi } from "../../../../src/openapi/index.ts";
import { http } from "../../../../src/protobuf/gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "../../../../src/protobuf/gen/google/api/http_pb.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { isGreenhouse, restrictedServices } from "../../../../../testing/src/gateway/restricted.ts";
import { openValidation } from "../../../../src/validation/index.ts";
import { createFetchGateway } from "../../../../src/fetch/entry.ts";
import { createGateway, type GatewayOptions, type VisibilityOptions, visibleServices } from "../../../../src/index.ts";

// Invalid labels in the option `visibility`, and rules that refer to hidden parts.

const services = restrictedServices();
const greenhouse = services.find(isGreenhouse) ?? GreenhouseService;
const maintenance = services.find(({ name }) => name === "Maintenance") ?? greenhouse;
const noRoutes: GatewayOptions["routes"] = () => undefined;

test.each<[owner: string, option: string, open: (visibility: VisibilityOptions) => unknown]>([
  ["createGateway", "visibility.allow[1]", (visibility) => createGateway({ routes: noRoutes, visibility })],
  ["createFetchGateway", "visibility.allow[1]", (visibility) => createFetchGateway({ routes: noRoutes, visibility })],
  ["visibleServices", "allow[1]", (visibility) => visibleServices(services, visibility)],
])("%s refuses a label that is not a string", (owner, option, open) => {
  const invalid: VisibilityOptions = JSON.parse('{ "allow": ["INTERNAL", 1] }');
  expect(() => open(invalid)).toThrow(`option "${option}" of ${owner} must be a string, got number`);
});

test("HTTP rules and omissions for hidden RPCs are ignored", async () => {
  const rest = {
    rules: [
      { selector: `${greenhouse.typeName}.GetReading`, pattern: { case: "get", value: "/moved/{sensor}" } },
      { selector: `${maintenance.typeName}.Rinse`, pattern: { case: "get", value: "/rinse" } },
    ],
    omit: [`${maintenance.typeName}.Rinse`],
  } as const;
  const routes: GatewayOptions["routes"] = (router) =>
    router.service(greenhouse, { getReading: ({ sensor }) => ({ sensor }) }).service(maintenance, {});
  const statusFor = async (allow: readonly string[]): Promise<number> =>
    (await createGateway({ routes, rest, visibility: { allow } }).fetch(new Request("http://a/moved/4"))).status;
  expect([await statusFor([]), await statusFor(["INTERNAL"])]).toEqual([404, 200]);
});

function changeGreenhouse(change: (proto: FileDescriptorProto) => void): typeof GreenhouseService {
  const proto = structuredClone(greenhouse.file.proto);
  change(proto);
  const set = fromBinary(FileDescriptorSetSchema, descriptorSetOf({ ...greenhouse.file, proto }));
  const service = createFileRegistry(set).getService(greenhouse.typeName);
  if (service === undefined || !isGreenhouse(service)) throw new TypeError("the set has no greenhouse");
  return service;
}

function unknownField(no: number, message: Uint8Array): UnknownField {
  return { no, wireType: WireType.LengthDelimited, data: new BinaryWriter().bytes(message).finish() };
}

describe("validation of a visible enum with defined_only", () => {
  const rules = new BinaryWriter().tag(16, WireType.LengthDelimited).bytes(Uint8Array.of(0x10, 1)).finish();
  const service = changeGreenhouse(({ messageType }) => {
    const fields = messageType.filter(({ name }) => name === "WaterBedRequest").flatMap(({ field }) => field);
    for (const field of fields)
      if (field.name === "mode")
        field.options = { ...create(FieldOptionsSchema), $unknown: [unknownField(1159, rules)] };
  });

  test.each([
    { number: "a visible number", mode: 1, allow: [], want: [200, 1] },
    { number: "a number of no value", mode: 99, allow: [], want: [400, undefined] },
    { number: "a hidden number", mode: 2, allow: [], want: [200, 0] },
    { number: "an allowed number", mode: 2, allow: ["INTERNAL"], want: [200, 2] },
    { number: "a number of no value without validation", mode: 99, allow: [], want: [200, 99], isValidated: false },
  ])("handles $number over JSON and binary", async ({ mode, allow, want, isValidated = true }) => {
    for (const [type, body] of [
      ["application/json", `{"mode":${mode}}`],
      ["application/proto", new Uint8Array([0x20, mode])],
    ] as const) {
      let received: unknown;
      const gateway = createGateway({
        visibility: { allow },
        ...(isValidated && { validation: await openValidation() }),
        routes: (router) =>
          router.service(service, {
            waterBed: (request) => ((received = Reflect.get(request, "mode")), {}),
          }),
      });
      const headers = { "content-type": type };
      const url = `http://a/${service.typeName}/WaterBed`;
      const { status } = await gateway.fetch(new Request(url, { method: "POST", headers, body }));
      expect([status, received]).toEqual(want);
    }
  });
});

type Rule = MessageInitShape<typeof HttpRuleSchema>;
const get = (value: string, more: Rule = {}): Rule => ({ pattern: { case: "get", value }, ...more });
const post = (value: string, more: Rule = {}): Rule => ({ pattern: { case: "post", value }, ...more });
const custom = (path: string): Rule => ({ pattern: { case: "custom", value: { kind: "QUERY", path } } });

function withRule(rule: Rule): typeof GreenhouseService {
  return changeGreenhouse(({ service: [service] }) => {
    const options = service?.method.find(({ name }) => name === "WaterBed")?.options;
    const others = options?.$unknown?.filter(({ no }) => no !== http.number) ?? [];
    const annotation = unknownField(http.number, toBinary(HttpRuleSchema, create(HttpRuleSchema, rule)));
    if (options !== undefined) options.$unknown = [...others, annotation];
  });
}

function routesOf(service: typeof GreenhouseService, allow: readonly string[]): readonly (readonly string[])[] {
  const gateway = createGateway({ routes: (router) => router.service(service, {}), visibility: { allow } });
  const routes = gateway.routes.filter(({ template, path }) => template !== undefined && !path.includes("sensors"));
  const { paths } = createOpenApi(visibleServices([service], { allow }), { info: { title: "t", version: "1" } });
  return [routes.map(({ path }) => path), Object.keys(paths).filter((path) => !path.includes("sensors"))];
}

describe("an HTTP rule that names a hidden field", () => {
  test.each<{ name: string; rule: Rule; visible: readonly string[]; all: readonly string[] }>(
    // oxfmt-ignore
    [
      { name: "in the path of its second binding",
        rule: post("/beds/{bed}", { additionalBindings: [post("/notes/{note}"), post("/again/{bed}")] }),
        visible: ["/beds/{bed}", "/again/{bed}"], all: ["/beds/{bed}", "/notes/{note}", "/again/{bed}"] },
      { name: "in the path of its first binding",
        rule: get("/notes/{note=a/*}", { additionalBindings: [post("/beds/{bed}", { body: "*" })] }),
        visible: ["/beds/{bed}"], all: ["/notes/{note=a/*}", "/beds/{bed}"] },
      { name: "in a body and in a response body", rule: get("/beds/{bed}", { additionalBindings: [post("/body/{bed}", { body: "note" }), get("/response/{bed}", { responseBody: "note" })],
        }), visible: ["/beds/{bed}"], all: ["/beds/{bed}", "/body/{bed}", "/response/{bed}"] },
      { name: "in its only binding", rule: post("/notes/{note}"), visible: [], all: ["/notes/{note}"] },
    ],
  )("$name keeps the other bindings", ({ rule, visible, all }) => {
    const [routes, operations] = routesOf(withRule(rule), []);
    expect(routes).toEqual(visible);
    expect(operations).toHaveLength(visible.length);
    expect(routesOf(withRule(rule), ["INTERNAL"])[0]).toEqual(all);
  });

  test("in a binding with a custom method hides the binding", () =>
    expect(routesOf(withRule(custom("/notes/{note}")), [])[0]).toEqual([]));

  test("is refused if a binding names an unknown field", () => {
    const service = withRule(post("/beds/{bed}", { additionalBindings: [post("/notes/{nothing}")] }));
    expect(() => routesOf(service, [])).toThrow("/notes/{nothing}");
  });
});
