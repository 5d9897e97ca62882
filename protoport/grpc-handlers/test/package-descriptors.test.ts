import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { type DescMessage, type DescService, getOption } from "@bufbuild/protobuf";
import { createConnectRouter } from "@connectrpc/connect";
import { makeClientConstructor, type MethodDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { readDescriptorSet } from "../../gateway/src/protobuf/descriptors/index.ts";
import { http } from "../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { projectFolder } from "@protoport/testing/process";
import { addGrpcJsService, readServices } from "../src/grpc-js.ts";
import { includeDirs, loadGarden } from "./garden.ts";

const bufSet = execFileSync(
  "node_modules/.bin/buf",
  [
    "build",
    ".",
    [
      "--config",
      JSON.stringify({ version: "v2", modules: includeDirs.map((path) => ({ path: relative(projectFolder, path) })) }),
    ],
    ["--output", "-"],
  ].flat(),
  { cwd: projectFolder },
);

/** Returns what JSON and REST need to know about a service. */
function shapeOf(service: DescService | undefined): unknown {
  const messages = new Map<string, unknown>();
  const visit = (desc: DescMessage): string => {
    if (messages.has(desc.typeName)) return desc.typeName;
    messages.set(desc.typeName, undefined);
    const fields = desc.fields.map((field) => {
      const { name, jsonName, number, fieldKind, presence, scalar, oneof, enum: enumType } = field;
      const values = enumType?.values.map((value) => [value.name, value.number]);
      const type = field.message && visit(field.message);
      return { name, jsonName, number, fieldKind, presence, scalar, oneof: oneof?.name, values, type };
    });
    messages.set(desc.typeName, { fields, nested: desc.proto.nestedType.map(({ name }) => name) });
    return desc.typeName;
  };
  const methods = service?.methods.map((method) => ({
    name: method.name,
    kind: method.methodKind,
    rule: getOption(method, http),
    types: [visit(method.input), visit(method.output)],
  }));
  return { typeName: service?.typeName, methods, messages: [...messages] };
}

const garden = readDescriptorSet(bufSet).services.find(({ typeName }) => typeName === "garden.v1.Garden");

test.each([{ keepCase: false }, { keepCase: true }])(
  "proto-loader's descriptors loaded with %j match buf's descriptors",
  (options) => {
    const [service, ...others] = readServices(loadGarden(options));
    expect([shapeOf(service), others]).toEqual([shapeOf(garden), []]);
  },
);

test("readServices omits extensions in proto-loader definitions", () => {
  const types = `${ask} message Open { extensions 100 to 199; } extend Open { optional string note = 100; }`;
  const [service] = readServices(load("Extended", { types, rpc: "rpc Put(Open) returns (Open);" }));
  const fieldsOf = service?.methods.map(({ name, input }) => [name, ...input.fields]);
  expect(fieldsOf).toEqual([["Get", expect.objectContaining({ name: "the_name" })], ["Put"]]);
});

test("the synthetic oneofs of optional fields follow the other oneofs", () => {
  const fields =
    "optional int32 the_one = 1; oneof kind { string text = 2; int32 number = 3; } optional int32 two = 4;";
  const types = `${ask} message Mixed { ${fields} oneof last { string end = 5; } }`;
  const [service] = readServices(load("Ordered", { types, rpc: "rpc Put(Mixed) returns (Mixed);" }));
  const { field, oneofDecl } = service?.methods[1]?.input.proto ?? {};
  expect(oneofDecl?.slice(0, 2).map(({ name }) => name)).toEqual(["kind", "last"]);
  const found = field?.map(({ name, oneofIndex }) => `${name} ${oneofIndex}`);
  expect(found).toEqual(["the_one 2", "text 0", "number 0", "two 3", "end 1"]);
});

test.each([false, true])("with keepCase %s, HTTP rules may use snake case and camel case", (keepCase) => {
  const nested =
    "message Other { Inner inner_one = 1; message Inner { string petId = 1; } } message Out { string petId = 1; }";
  const types = `message Ask { string the_name = 1; string pet_id = 2; } message Put { string petId = 1; } ${nested}`;
  const rpc = [
    'rpc Snake(Ask) returns (Ask) { option (google.api.http) = {get: "/snake/{pet_id}"}; }',
    'rpc Camel(Put) returns (Put) { option (google.api.http) = {get: "/camel/{petId}"}; }',
    'rpc Nested(Other) returns (Out) { option (google.api.http) = {get: "/nested/{inner_one.petId}" response_body: "petId"}; }',
  ].join(" ");
  const [service] = readServices(load("Cases", { types, rpc, keepCase }));
  const names = service?.methods.map(({ input }) => input.fields.map(({ name }) => name));
  expect(names).toEqual([["the_name", "pet_id"], ["the_name", "pet_id"], ["petId"], ["inner_one"]]);
  expect(service?.methods[3]?.input.fields[0]?.message?.fields.map(({ name }) => name)).toEqual(["petId"]);
  expect(service?.methods[3]?.output.fields.map(({ name }) => name)).toEqual(["petId"]);
});

test("readServices keeps capital first letters and oneofs with one field", () => {
  const types = `${ask} message Put { string Upper = 1; oneof xtext { string text = 2; } }`;
  const [service] = readServices(load("Names", { types, rpc: "rpc Put(Put) returns (Put);", keepCase: true }));
  const { fields, oneofs } = service?.methods[1]?.input ?? {};
  expect([fields?.map(({ name }) => name), oneofs?.map(({ name }) => name)]).toEqual([["Upper", "text"], ["xtext"]]);
});

test("readServices omits the package's services that the definition does not contain", () => {
  const definition: object = Reflect.get(
    load("One", { types: `${ask} service Other { rpc Get(Ask) returns (Ask); }` }),
    "separate.v1.One",
  );
  expect(readServices(definition).map(({ typeName }) => typeName)).toEqual(["separate.v1.One"]);
});

const described: MethodDefinition<string, string> = {
  path: "/garden.v1.Garden/GetTree",
  requestStream: false,
  responseStream: false,
  requestSerialize: (value) => Buffer.from(value),
  requestDeserialize: String,
  responseSerialize: (value) => Buffer.from(value),
  responseDeserialize: String,
};

const ask = "message Ask { string the_name = 1; }";

function load(
  name: string,
  {
    scope = "separate.v1",
    types = ask,
    rpc: more = "",
    keepCase = false,
  }: { scope?: string; types?: string; rpc?: string; keepCase?: boolean },
): object {
  const folder = mkdtempSync(join(tmpdir(), "separate-"));
  try {
    const rpc = `rpc Get(Ask) returns (Ask) { option (google.api.http) = {get: "/${name}/{the_name}"}; }`;
    const head = `syntax = "proto3"; package ${scope}; import "google/api/annotations.proto";`;
    writeFileSync(join(folder, "one.proto"), `${head} service ${name} { ${rpc} ${more} } ${types}`);
    return loadSync("one.proto", { keepCase, includeDirs: [folder, ...includeDirs] });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("definitions from two loadSync calls", () => {
  test.each([
    ["in one package", {}, {}, ["separate.v1.First", "separate.v1.Second"]],
    ["in two packages", {}, { scope: "other.v1" }, ["separate.v1.First", "other.v1.Second"]],
    [
      "in one package with different messages",
      { types: `${ask} message Other {}` },
      { types: `enum Kind { NONE = 0; } ${ask}` },
      ["separate.v1.First", "separate.v1.Second"],
    ],
  ])("%s keep the services and HTTP rules of both calls", (_name, first, second, services) => {
    const found = readServices({ ...load("First", first), ...load("Second", second) }).flatMap(
      ({ typeName, methods }) => methods.map((method) => [typeName, getOption(method, http).pattern.value]),
    );
    expect(found).toEqual(services.map((typeName) => [typeName, `/${typeName.split(".")[2]}/{the_name}`]));
  });

  test("keep a service with an RPC that is named path", () => {
    const second = load("Second", { scope: "other.v1", rpc: "rpc path(Ask) returns (Ask);" });
    const found = readServices({ ...load("First", {}), ...second });
    const names = found.map(({ typeName, methods }) => [typeName, ...methods.map(({ name }) => name)].join(" "));
    expect(names).toEqual(["separate.v1.First Get", "other.v1.Second Get path"]);
  });

  test("are refused if a service has no descriptors", () => {
    const error = "the definition of garden.v1.Garden contains no descriptors";
    for (const others of [{ "garden.v1.Garden": { GetTree: described } }, { GetTree: described }])
      expect(() => readServices({ ...load("First", {}), ...others })).toThrow(error);
  });

  test("keep an enum that only one of them contains", () => {
    const types = `enum Kind { NONE = 0; } message Tree { Kind kind = 1; } ${ask}`;
    const merged = { ...load("First", {}), ...load("Second", { types, rpc: "rpc Put(Tree) returns (Tree);" }) };
    const [, second] = readServices(merged);
    expect(second?.methods[1]?.input.fields[0]?.enum?.typeName).toBe("separate.v1.Kind");
  });

  test("are refused if they contain different messages with the same name", () => {
    const types = "message Ask { string the_name = 2; }";
    expect(() => readServices({ ...load("First", {}), ...load("Second", { types }) })).toThrow(
      'the definitions contain different types named "separate.v1.Ask": load them with one call of loadSync, or set descriptors',
    );
  });
});

test.each(
  // oxfmt-ignore
  [
    ["a definition of another service", loadGarden(),
      'the definition is of service "garden.v1.Garden", and the descriptors have "greenhouse.v1.GreenhouseService"',
      [GreenhouseService]],
    ["descriptors without services", loadGarden(),
      'the definition is of service "garden.v1.Garden", and the descriptors have no service', []],
    ["a definition with an unknown method",
      { ...loadGarden(), prune: { ...described, path: "/garden.v1.Garden/Prune" } },
      'the definition has /garden.v1.Garden/Prune, and service "garden.v1.Garden" does not', undefined],
    ["a streaming definition of a unary method",
      { ...loadGarden(), GetTree: { ...loadGarden()["GetTree"], ...described, responseStream: true } },
      "/garden.v1.Garden/GetTree is server_streaming in the definition, and unary in the descriptors", undefined],
    ["a unary definition of a streaming method", { ...loadGarden(),
        AddTrees: { ...loadGarden()["AddTrees"], ...described, path: "/garden.v1.Garden/AddTrees" } },
      "/garden.v1.Garden/AddTrees is unary in the definition, and client_streaming in the descriptors", undefined],
    ["a definition without descriptors", { getTree: described },
      "the definition contains no descriptors: set descriptors to the output of buf build -o definition.binpb", undefined],
    ["a definition without methods", {}, "the service definition has no methods", undefined],
    ["the class of a client", Object.fromEntries(Object.entries(makeClientConstructor(loadGarden(), "Garden"))),
      '"service" of the service definition has no path; pass a definition such as Greeter.service', undefined],
  ],
)("addGrpcJsService refuses %s with a TypeError", (_name, definition, error, descriptors) => {
  const options = descriptors === undefined ? {} : { descriptors };
  expect(() => addGrpcJsService(createConnectRouter(), definition, {}, options)).toThrow(TypeError);
  expect(() => addGrpcJsService(createConnectRouter(), definition, {}, options)).toThrow(error);
});

test.each([
  { name: "a descriptor set", descriptors: bufSet },
  { name: "a generated file", descriptors: garden?.file },
  { name: "services", descriptors: garden && [garden] },
])("addGrpcJsService accepts $name as descriptors for static code", ({ descriptors }) => {
  const definition = { getTree: described };
  const service = addGrpcJsService(createConnectRouter(), definition, {}, { ...(descriptors && { descriptors }) });
  expect(service.typeName).toBe("garden.v1.Garden");
});
