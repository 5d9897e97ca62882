import {
  create,
  createFileRegistry,
  type DescMethod,
  fromJson,
  type JsonObject,
  setExtension,
} from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_descriptor,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { createRestTransport } from "../../../src/index.ts";
import { file_google_api_annotations, http } from "../../../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { file_google_api_http, HttpRuleSchema } from "../../../../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { respondWith, startRestServer } from "../../../../testing/src/gateway/rest-server.ts";

// What the compliance suite in Google's gapic-showcase requires from a client's paths, with the fields that it uses.

const field = (name: string, number: number, type: string, typeName?: string): JsonObject => ({
  name,
  jsonName: name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
  number,
  type: `TYPE_${type}`,
  label: "LABEL_OPTIONAL",
  ...(typeName !== undefined && { typeName: `.showcase.${typeName}` }),
});

const kingdoms = ["LIFE_KINGDOM_UNSPECIFIED", "ARCHAEBACTERIA", "ANIMALIA"];

const definition = fromJson(FileDescriptorProtoSchema, {
  name: "showcase.proto",
  package: "showcase",
  syntax: "proto3",
  dependency: ["google/api/annotations.proto"],
  enumType: [{ name: "Kingdom", value: kingdoms.map((name, number) => ({ name, number })) }],
  // oxfmt-ignore
  messageType: [
    { name: "Child", field: [field("f_string", 1, "STRING")] },
    { name: "Data",
      field: [field("f_string", 1, "STRING"), field("f_int32", 2, "INT32"), field("f_double", 3, "DOUBLE"),
        field("f_bool", 4, "BOOL"), field("f_kingdom", 5, "ENUM", "Kingdom"), field("f_child", 6, "MESSAGE",
        "Child")] },
    { name: "Repeat", field: [field("info", 1, "MESSAGE", "Data"), field("f_int32", 2, "INT32")] },
  ],
  service: [
    {
      name: "Compliance",
      method: ["RepeatDataSimplePath", "RepeatDataPathResource"].map((name) => ({
        name,
        inputType: ".showcase.Repeat",
        outputType: ".showcase.Repeat",
      })),
    },
  ],
});

const simple =
  "/v1beta1/repeat/{info.f_string}/{info.f_int32}/{info.f_double}/{info.f_bool}/{info.f_kingdom}:simplepath";
const first =
  "/v1beta1/repeat/{info.f_string=first/*}/{info.f_child.f_string=second/*}/bool/{info.f_bool}:pathresource";
const second =
  "/v1beta1/repeat/{info.f_child.f_string=first/*}/{info.f_string=second/*}/bool/{info.f_bool}:childfirstpathresource";

for (const [at, [path, ...others]] of [[simple] as const, [first, second] as const].entries()) {
  const options = create(MethodOptionsSchema);
  const additionalBindings = others.map((value) => ({ pattern: { case: "get", value } }) as const);
  setExtension(options, http, create(HttpRuleSchema, { pattern: { case: "get", value: path }, additionalBindings }));
  const method = definition.service[0]?.method[at];
  if (method !== undefined) method.options = options;
}

const files = [file_google_protobuf_descriptor, file_google_api_http, file_google_api_annotations].map(
  ({ proto }) => proto,
);
const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [...files, definition] }));

function methodOf(name: string): DescMethod & { readonly methodKind: "unary" } {
  const method = registry.getService("showcase.Compliance")?.methods.find((each) => each.name === name);
  if (method?.methodKind !== "unary") throw new Error(`there is no ${name}`);
  return { ...method, methodKind: "unary" };
}

test.each(
  // oxfmt-ignore
  [
    ["basic data types", "/Hello/-1/-290000/true/ANIMALIA:simplepath?fInt32=-10", "RepeatDataSimplePath",
      { info: { fString: "Hello", fInt32: -1, fDouble: -29e4, fBool: true, fKingdom: "ANIMALIA" }, fInt32: -10 }],
    ["zero values in the path", "/Hello/0/0/false/LIFE_KINGDOM_UNSPECIFIED:simplepath", "RepeatDataSimplePath",
      { info: { fString: "Hello" } }],
    ["strings with quotes, spaces and percents",
      "/Hello%20%22You%22%20100%25/0/0/false/LIFE_KINGDOM_UNSPECIFIED:simplepath", "RepeatDataSimplePath",
      { info: { fString: 'Hello "You" 100%' } }],
    ["values for the first binding", "/first/hello/second/greetings/bool/false:pathresource", "RepeatDataPathResource",
      { info: { fString: "first/hello", fChild: { fString: "second/greetings" } } }],
    ["values for the additional binding", "/first/hello/second/greetings/bool/false:childfirstpathresource",
      "RepeatDataPathResource", { info: { fString: "second/greetings", fChild: { fString: "first/hello" } } }],
  ],
)('a compliance suite request with %s has the path and query "%s"', async (_name, want, rpc, request) => {
  await using server = await startRestServer((response) => respondWith(response, 200, {}));
  const method = methodOf(rpc);
  const transport = createRestTransport({ baseUrl: server.baseUrl });
  await transport.unary(method, undefined, undefined, undefined, fromJson(method.input, request));
  expect(server.seen).toMatchObject([{ line: `GET /v1beta1/repeat${want}` }]);
});
