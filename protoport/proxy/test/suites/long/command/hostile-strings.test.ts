import { writeFileSync } from "node:fs";
import { create, setExtension, toBinary } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, FileDescriptorProtoSchema, MethodOptionsSchema
} from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { http } from "../../../../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "../../../../../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { ServerReflection } from "../../../../../gateway/src/protobuf/gen/grpc/reflection/v1/reflection_pb.ts";
import { createTestGateway, runProxyCommand } from "@protoport/testing/proxy";
import { createTempFolder } from "@protoport/testing/process";
import { setOfFiles } from "../../../support/set-of-files.ts";

// A definition's strings come from an upstream, which may be hostile. On a terminal, ESC sequences run terminal
// commands, and a line break forges a log line.

const hostile = "\u001B]0;title\u0007\r\nFORGED\u009B2J\u007F";
const folder = createTempFolder();
const set = folder.file("set.binpb");
let served: Uint8Array[] = [];
const upstream = createTestGateway({
  routes: (router) =>
    void router.service(ServerReflection, {
      async *serverReflectionInfo(requests) {
        for await (const { messageRequest } of requests)
          yield messageRequest.case === "listServices"
            ? { messageResponse: { case: "listServicesResponse", value: { service: [{ name: "a.v1.Service" }] } } }
            : { messageResponse: { case: "fileDescriptorResponse", value: { fileDescriptorProto: served } } };
      },
    }),
});
let address = "";
beforeAll(async () => {
  const { port } = await upstream.listen({ host: "127.0.0.1" });
  address = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  await upstream.close();
  folder[Symbol.dispose]();
});

/** Returns a definition with each kind of string, whose strings are all valid, and its RPC's rule. */
function createDefinition() {
  const label = FieldDescriptorProto_Label.OPTIONAL;
  const { STRING, MESSAGE, ENUM } = FieldDescriptorProto_Type;
  const rule = create(HttpRuleSchema, {
    selector: "a.v1.Service.Run",
    pattern: { case: "post", value: "/v1/{name=names/*}:run" },
    body: "child",
    responseBody: "child",
    additionalBindings: [{ pattern: { case: "custom", value: { kind: "REPORT", path: "/v1/reports" } }, body: "*" }],
  });
  const field = [
    { name: "name", jsonName: "name", number: 1, label, type: STRING, oneofIndex: 0, defaultValue: "text" },
    { name: "child", jsonName: "child", number: 2, label, type: MESSAGE, typeName: ".a.v1.Request.Child" },
    { name: "kind", jsonName: "kind", number: 3, label, type: ENUM, typeName: ".a.v1.Kind" },
  ];
  const nestedType = [{ name: "Child", field: [{ name: "text", jsonName: "text", number: 1, label, type: STRING }] }];
  const types = { inputType: ".a.v1.Request", outputType: ".a.v1.Request" };
  const file = create(FileDescriptorProtoSchema, {
    name: "a/v1/a.proto",
    package: "a.v1",
    syntax: "proto3",
    dependency: ["google/api/annotations.proto"],
    messageType: [{ name: "Request", field, oneofDecl: [{ name: "choice" }], nestedType, reservedName: ["reserved"] }],
    enumType: [{ name: "Kind", value: [{ name: "KIND_UNSPECIFIED", number: 0 }] }],
    service: [{ name: "Service", method: [{ name: "Run", ...types, options: create(MethodOptionsSchema) }] }],
    options: { javaPackage: "java", goPackage: "go" },
  });
  return { file, rule };
}

type StringAt = { readonly path: string; readonly value: string; readonly set: (value: string) => void };

function* stringsOf(message: object, path: string): Iterable<StringAt> {
  for (const [name, value] of Object.entries(message)) {
    const at = `${path}.${name}`;
    if (name.startsWith("$") || name === "case") continue;
    if (typeof value === "string")
      yield { path: at, value, set: (text) => void Object.assign(message, { [name]: text }) };
    else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) yield* stringsOf(value, at);
  }
}

const paths = [...stringsOf(createDefinition(), "")].map(({ path }) => path);

/** Writes the definition with a changed string to the file, and lets the upstream serve it. */
function serve(path: string, change: (value: string) => string): void {
  const definition = createDefinition();
  for (const each of stringsOf(definition, "")) if (each.path === path) each.set(change(each.value));
  const { file, rule } = definition;
  const options = file.service[0]?.method[0]?.options;
  if (options !== undefined) setExtension(options, http, rule);
  served = [toBinary(FileDescriptorProtoSchema, file)];
  writeFileSync(set, setOfFiles(file));
}

async function outputOf(args: readonly string[]): Promise<string> {
  const { printed, errors } = await runProxyCommand(...args);
  return `${printed}\n${errors}`;
}

test("the definition of this test is valid and contains all strings", async () => {
  expect(paths).toEqual(expect.arrayContaining([".file.syntax", ".rule.pattern.value", ".rule.body"]));
  serve("", String);
  expect(await outputOf(["check", set])).toContain("The gateway would start");
  expect(await outputOf(["--upstream", address, "--reflection", "--check"])).toContain("POST /v1/{name=names/*}:run");
});

const changes = [
  { how: "is", change: () => hostile },
  { how: "ends with", change: (value: string) => `${value}${hostile}` },
  { how: "contains", change: (value: string) => value.replace(/(?<=.)/, hostile) },
];

test.each(paths.flatMap((path) => changes.map((each) => ({ path, ...each }))))(
  "the output contains no control characters if $path $how a hostile string",
  async ({ path, change }) => {
    serve(path, change);
    const common = ["--upstream", address, "--check", "--mcp", "*", "--docs"];
    const outputs = await Promise.all([
      outputOf(["check", set, "--mcp", "*"]),
      outputOf([...common, "--descriptors", set]),
      outputOf([...common, "--reflection"]),
    ]);
    for (const output of outputs) {
      expect(output).not.toBe("");
      // eslint-disable-next-line no-control-regex
      expect(output).not.toMatch(/[\x00-\x09\x0B-\x1F\x7F-\x9F]/);
      expect(output).not.toMatch(/^FORGED/m);
    }
  },
);
