import { create, type DescService, type Message } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type as Type, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { parseHttpRules } from "../../src/index.ts";
import { unsupportedOpenApiOptions } from "../../src/openapi/checks-entry.ts";
import { createOpenApi, type OpenApiOptions } from "../../src/openapi/entry.ts";
import { serviceIn } from "../../../testing/src/gateway/file-init.ts";

// grpc-gateway's options openapiv2_*, with the numbers in protoc-gen-openapiv2/options/openapiv2.proto.

/** A message's fields by number. An array is a repeated string. */
type Fields = { readonly [number: number]: string | boolean | readonly string[] | Fields };

function encode(fields: Fields): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter();
  const add = (number: number, value: Fields[number]): void => {
    if (typeof value === "boolean") writer.tag(number, WireType.Varint).bool(value);
    else if (typeof value === "string") writer.tag(number, WireType.LengthDelimited).string(value);
    else if (Array.isArray(value)) for (const each of value) add(number, each);
    else writer.tag(number, WireType.LengthDelimited).bytes(encode(value));
  };
  for (const [number, value] of Object.entries(fields)) add(Number(number), value);
  return writer.finish();
}

/** Sets the extension 1042 in a descriptor's options. */
function setOption(proto: { options?: Message | undefined } | undefined, fields: Fields | undefined): void {
  const data = new BinaryWriter().bytes(encode(fields ?? {})).finish();
  const value = { no: 1042, wireType: WireType.LengthDelimited, data };
  if (proto?.options !== undefined && fields !== undefined) proto.options.$unknown = [value];
}

const docs: Fields = { 1: "More", 2: "https://docs.example" };

interface Options {
  readonly file?: Fields;
  readonly service?: Fields;
  readonly methods?: readonly (Fields | undefined)[];
  readonly message?: Fields;
  readonly field?: Fields;
  readonly enum?: Fields;
}

/** Returns a service with an RPC for each item in `methods`, whose only message has one enum field. */
function serviceOf(options: Options): DescService {
  const { methods = [undefined] } = options;
  const enumType = { label: 1, type: Type.ENUM, typeName: ".shop.Kind" };
  const kind = { name: "kind", jsonName: "kind", number: 1, ...enumType, options: {} };
  const rpc = { inputType: ".shop.Order", outputType: ".shop.Order", options: {} };
  const method = methods.map((_, at) => ({ ...rpc, name: `Send${at}` }));
  const file = create(FileDescriptorProtoSchema, {
    name: "shop.proto",
    package: "shop",
    syntax: "proto3",
    messageType: [{ name: "Order", field: [kind], options: {} }],
    enumType: [{ name: "Kind", value: [{ name: "KIND_ANY", number: 0 }], options: {} }],
    service: [{ name: "Shop", method, options: {} }],
    options: {},
  });
  setOption(file, options.file);
  setOption(file.service[0], options.service);
  for (const [at, fields] of methods.entries()) setOption(file.service[0]?.method[at], fields);
  setOption(file.messageType[0], options.message);
  setOption(file.messageType[0]?.field[0], options.field);
  setOption(file.enumType[0], options.enum);
  return serviceIn(file, "shop.Shop");
}

const comments = new Map([
  ["shop.Shop.Send0", "Sends an order. Soon."],
  ["shop.Order", "From the comment."],
]);

function describeShop(options: Options, further: Pick<OpenApiOptions, "operationIds"> = {}) {
  const service = serviceOf(options);
  const rules = service.methods.map(({ name }) => ({ selector: `shop.Shop.${name}`, post: `/${name}`, body: "*" }));
  const rest = { rules: parseHttpRules(JSON.stringify({ rules })) };
  const document = createOpenApi([service], { info: { title: "t", version: "1" }, rest, comments, ...further });
  return { document, operations: service.methods.map(({ name }) => document.paths[`/${name}`]?.post) };
}

test("openapiv2_operation sets summary, description, externalDocs, operationId, tags and deprecated", () => {
  const all = { 1: ["sending", "orders"], 2: "Send", 3: "At once.", 4: docs, 5: "sendOrder", 11: true };
  const { document, operations } = describeShop({ methods: [all] });
  expect(operations[0]).toMatchObject({
    operationId: "sendOrder",
    summary: "Send",
    description: "At once.",
    externalDocs: { description: "More", url: "https://docs.example" },
    tags: ["sending", "orders"],
    deprecated: true,
  });
  expect(document.tags.map(({ name }) => name)).toEqual(["sending", "orders"]);
});

test.each([
  { name: "only a summary", fields: { 2: "Send" }, want: { summary: "Send", description: "Soon." } },
  { name: "only a description", fields: { 3: "Later." }, want: { summary: "Sends an order", description: "Later." } },
  { name: "nothing", fields: {}, want: { summary: "Sends an order", description: "Soon.", tags: ["Shop"] } },
] as const)("openapiv2_operation that sets $name takes other members from the RPC's comment", ({ fields, want }) => {
  expect(describeShop({ methods: [fields] }).operations[0]).toMatchObject(want);
});

test("openapiv2_operation is refused if two RPCs have the same operationId, unless operationIds is full", () => {
  const shop: Options = { methods: [undefined, { 5: "send" }, { 5: "send" }] };
  expect(() => describeShop(shop)).toThrow(
    "the operation id send names shop.Shop.Send1 and shop.Shop.Send2; set operationIds: full",
  );
  const { operations } = describeShop(shop, { operationIds: "full" });
  const want = ["shop_Shop_send0", "shop_Shop_send1", "shop_Shop_send2"];
  expect(operations.map((operation) => operation?.operationId)).toEqual(want);
});

test("openapiv2_tag sets the name and description of a service's tag", () => {
  const { document, operations } = describeShop({ service: { 1: "shopping", 2: "Buy.", 3: docs } });
  expect(document.tags).toMatchObject([{ name: "shopping", externalDocs: { url: "https://docs.example" } }]);
  expect([document.info.description, operations[0]?.tags]).toEqual(["Buy.", ["shopping"]]);
});

test("openapiv2_schema, openapiv2_field and openapiv2_enum set descriptions and externalDocs", () => {
  const message = { 1: { 6: "An order." }, 5: docs };
  const { document } = describeShop({ message, field: { 6: "Its kind." }, enum: { 1: "All kinds.", 6: docs } });
  const externalDocs = { description: "More", url: "https://docs.example" };
  expect(document.components?.schemas).toMatchObject({
    Order: { description: "An order.", externalDocs, properties: { kind: { description: "Its kind." } } },
    Kind: { description: "All kinds.", externalDocs },
  });
});

test("unsupportedOpenApiOptions lists ignored option fields with their descriptors", () => {
  const service = serviceOf({
    file: { 2: { 1: "Title" }, 14: docs },
    methods: [{ 9: {} }, { 9: {}, 4: { 1: "without a URL" } }],
    message: { 1: { 5: "Title" }, 99: "new" },
    field: { 17: "^a$" },
    service: { 2: "Buy." },
  });
  expect(Object.fromEntries(unsupportedOpenApiOptions([service]))).toEqual({
    "openapiv2_swagger.external_docs": ["shop.proto"],
    "openapiv2_operation.responses": ["shop.Shop.Send0", "shop.Shop.Send1"],
    "openapiv2_operation.external_docs": ["shop.Shop.Send1"],
    "openapiv2_schema.json_schema.title": ["shop.Order"],
    "openapiv2_schema.99": ["shop.Order"],
    "openapiv2_field.pattern": ["shop.Order.kind"],
  });
});

test("options of protoc-gen-openapiv3 are listed with the elements that set them", () => {
  const service = serviceOf({ methods: [undefined, { 2: "Send" }] });
  const [first, second] = service.methods;
  const value = { no: 1295, wireType: WireType.LengthDelimited, data: new Uint8Array([0]) };
  for (const { proto } of [service.file, first, second, first?.input, first?.input.fields[0]].flatMap(
    (desc) => desc ?? [],
  ))
    if (proto.options) proto.options.$unknown = [...(proto.options.$unknown ?? []), value];
  expect([...unsupportedOpenApiOptions([service])]).toEqual([
    ["openapiv3_document", ["shop.proto"]],
    ["openapiv3_operation", ["shop.Shop.Send0", "shop.Shop.Send1"]],
    ["openapiv3_schema", ["shop.Order"]],
    ["openapiv3_field", ["shop.Order.kind"]],
  ]);
});

test("a malformed option is listed, and the document is created without it", () => {
  const service = serviceOf({ methods: [{ 2: "Send" }] });
  const [method] = service.methods;
  // The option's length exceeds its bytes.
  for (const value of method?.proto.options?.$unknown ?? []) value.data[0] = 0x7f;
  expect([...unsupportedOpenApiOptions([service]).keys()]).toEqual(["openapiv2_operation"]);
  expect(createOpenApi([service], { info: { title: "t", version: "1" } }).paths).toEqual({});
});
