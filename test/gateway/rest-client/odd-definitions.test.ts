import { create, createFileRegistry, type DescMethod, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
import {
  type FieldDescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { RestMethod } from "../../../src/gateway/rest-client/rest-method.ts";
import { compileRestRules } from "../../../src/gateway/rest-client/rest-rule.ts";
import { http } from "../../../src/gateway/gen/google/api/annotations_pb.ts";
import { KitchenSink, SinkSchema } from "../../gen/kitchensink/v1/kitchen_sink_pb.ts";

// Definitions that protoc takes, and whose requests could be read as something else.

/** Makes the RPCs of a file that has one message, with fields of text, from their templates. */
function defineRpcs(jsonNames: Readonly<Record<string, string>>, templates: readonly string[]): readonly DescMethod[] {
  const field = Object.entries(jsonNames).map(([name, jsonName], at) => ({
    name,
    jsonName,
    number: at + 1,
    label: FieldDescriptorProto_Label.OPTIONAL,
    type: name === "inner" ? FieldDescriptorProto_Type.MESSAGE : FieldDescriptorProto_Type.STRING,
    ...(name === "inner" && { typeName: ".odd.Thing" }),
  })) satisfies MessageInitShape<typeof FieldDescriptorProtoSchema>[];
  const method = templates.map((get, at) => {
    const options = create(MethodOptionsSchema);
    setExtension(options, http, { $typeName: "google.api.HttpRule", selector: "", ...ruleOf(get) });
    return { name: `Rpc${at}`, inputType: ".odd.Thing", outputType: ".odd.Thing", options };
  });
  const messageType = [{ name: "Thing", field }];
  const file = create(FileDescriptorProtoSchema, {
    name: "odd.proto",
    package: "odd",
    syntax: "proto3",
    messageType,
    service: [{ name: "Odd", method }],
  });
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] }));
  return registry.getService("odd.Odd")?.methods ?? [];
}

function ruleOf(get: string) {
  return { pattern: { case: "get" as const, value: get }, body: "", responseBody: "", additionalBindings: [] };
}

/** Returns the target of a message, or why it has none. */
function targetOf(method: DescMethod | undefined, values: object): string {
  if (method === undefined) throw new Error("there is no such RPC");
  const message = Object.assign(create(method.input), values);
  try {
    return new RestMethod(method, { write: {}, read: {}, registry: undefined }).write(message).target;
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    return error.rawMessage.replace(/^.*?: /, "");
  }
}

test.each([
  { name: "slashes", others: ["/x/{a}/{b}", "/x/{a}/{b}:peek"], value: "y/:peek", read: "/x/{a}/{b}" },
  { name: "colons", others: ["/x/{a}:peek"], value: "y/z:peek", read: "/x/{a}:peek" },
  { name: "slashes and colons", others: ["/x/{a}/{b}:peek"], value: "y/z:peek", read: "/x/{a}/{b}:peek" },
])("a value is refused that is another RPC's path once its $name are decoded", ({ others, value, read }) => {
  const [one] = defineRpcs({ a: "a", b: "b" }, ["/x/{a}", ...others]);
  expect(targetOf(one, { a: "y:z" })).toBe("/x/y%3Az");
  const path = `/x/${encodeURIComponent(value)}`;
  expect(targetOf(one, { a: value })).toBe(`a: the path ${path} could be read as that of GET ${read}`);
});

test.each([
  { name: "leads to another field", names: { a: "inner.text", inner: "inner", text: "text" } },
  { name: "is the name of another", names: { a: "text", text: "other" } },
])("a field is called by its own name in a query if its JSON name $name", ({ names }) => {
  const [list] = defineRpcs(names, ["/x"]);
  expect(targetOf(list, { a: "1", text: "2" })).toMatch(/^\/x\?a=1&(?:text|other)=2$/);
});

// No RPC of these streams; they are written as one that does would write them.
test.each([
  { name: "a Value that is not set", body: "value", write: "writeFirst", want: "value: is not set, which a line" },
  {
    name: "a later Value that is not set",
    body: "value",
    write: "writeLater",
    want: "value: is not set, which a line",
  },
  { name: "a later text of a path, though empty", body: "*", write: "writeLater", want: "choice_text: only the first" },
] as const)("$name is refused in a stream", ({ body, write, want }) => {
  const method = body === "*" ? KitchenSink.method.replace : KitchenSink.method.update;
  const rule = compileRestRules(method).findLast(({ pattern }) => pattern.body === body);
  if (rule === undefined) throw new Error("there is no such rule");
  const message = create(SinkSchema, { choice: { case: "choiceText", value: "" } });
  const rest = new RestMethod(method, { write: {}, read: {}, registry: undefined });
  expect(() => rest[write](rule, body === "*" ? message : create(SinkSchema))).toThrow(
    expect.objectContaining({ code: Code.InvalidArgument, rawMessage: expect.stringContaining(`: ${want}`) }),
  );
});
