// oxfmt-ignore
import { create, createFileRegistry, type DescService, fromBinary, type MessageInitShape, setExtension, toBinary
} from "@bufbuild/protobuf";
// oxfmt-ignore
import { EnumValueOptionsSchema, type FieldDescriptorProtoSchema, FieldOptionsSchema, FileDescriptorProtoSchema,
  FileDescriptorSetSchema, MessageOptionsSchema, type MethodDescriptorProtoSchema, type MethodOptions,
  MethodOptionsSchema, ServiceOptionsSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { restrictedTo } from "../../../testing/src/gateway/restricted.ts";
import { http } from "../../src/protobuf/gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "../../src/protobuf/gen/google/api/http_pb.ts";
import { visibleServices } from "../../src/index.ts";
import { createOpenApi } from "../../src/openapi/index.ts";

// The cases in protoc-gen-openapiv2, whose examples use five filters: no label, each of two labels, both labels, and no
// filter. This package hides an RPC with a hidden message. protoc-gen-openapiv2 describes the RPC without a schema.

type FieldInit = MessageInitShape<typeof FieldDescriptorProtoSchema>;
type MethodInit = MessageInitShape<typeof MethodDescriptorProtoSchema>;

function field(name: string, number: number, labels = "", others: FieldInit = {}): FieldInit {
  const options = labels === "" ? {} : { options: restrictedTo(labels, FieldOptionsSchema) };
  const jsonName = name.replace(/_(.)/, (_, letter: string) => letter.toUpperCase());
  return { name, jsonName, number, type: 9, label: 1, ...options, ...others };
}

function rpc(name: string, pattern: { case: "get" | "post"; value: string }, labels = "", type = "Parcel"): MethodInit {
  const options: MethodOptions = create(MethodOptionsSchema);
  setExtension(options, http, create(HttpRuleSchema, { pattern }));
  const [inputType, outputType] = [`.parcels.v1.${type}`, `.parcels.v1.${type}`];
  const own = labels === "" ? options : restrictedTo(labels, MethodOptionsSchema, options);
  return { name, inputType, outputType, options: own };
}

const get = (value: string): { case: "get"; value: string } => ({ case: "get", value });
const post = (value: string): { case: "post"; value: string } => ({ case: "post", value });
const inOneof = { oneofIndex: 0 };
const definition = create(FileDescriptorProtoSchema, {
  name: "parcels/v1/parcels.proto",
  package: "parcels.v1",
  syntax: "proto3",
  enumType: [
    {
      name: "Size",
      value: [
        { name: "SIZE_UNSPECIFIED", number: 0 },
        { name: "SMALL", number: 1 },
        { name: "CRATE", number: 2, options: restrictedTo("INTERNAL", EnumValueOptionsSchema) },
        { name: "TUBE", number: 3, options: restrictedTo("INTERNAL,PREVIEW", EnumValueOptionsSchema) },
      ],
    },
  ],
  // oxfmt-ignore
  messageType: [
    { name: "Tag", oneofDecl: [{ name: "mark" }],
      field: [field("text", 1, "", inOneof), field("weight_note", 2, "INTERNAL", inOneof),
        field("color", 3, "INTERNAL,PREVIEW", inOneof)] },
    { name: "Parcel",
      field: [field("id", 1), field("tag", 2, "", { type: 11, typeName: ".parcels.v1.Tag" }),
        field("shelf", 3, "INTERNAL"), field("gift", 4, "INTERNAL,PREVIEW"),
        field("size", 5, "", { type: 14, typeName: ".parcels.v1.Size" })] },
    { name: "Seal", field: [field("id", 1)], options: restrictedTo("INTERNAL", MessageOptionsSchema) },
  ],
  // oxfmt-ignore
  service: [
    { name: "Parcels",
      method: [rpc("Send", post("/parcels/{id}")), rpc("Audit", get("/audit"), "INTERNAL"),
        rpc("Track", get("/track"), "PREVIEW"), rpc("Return", get("/return"), "INTERNAL,PREVIEW"),
        rpc("SealParcel", get("/seal"), "", "Seal")] },
    { name: "Warehouse", options: restrictedTo("INTERNAL", ServiceOptionsSchema),
      method: [rpc("Send", post("/warehouse/parcels/{id}"))] },
  ],
});

function servicesOf(): readonly DescService[] {
  const set = create(FileDescriptorSetSchema, { file: [definition] });
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, toBinary(FileDescriptorSetSchema, set)));
  return [...registry].filter((type) => type.kind === "service");
}

const all = {
  tags: ["Parcels", "Warehouse"],
  paths: ["/audit", "/parcels/{id}", "/return", "/seal", "/track", "/warehouse/parcels/{id}"],
  parameters: ["gift", "id", "shelf", "size", "tag.color", "tag.text", "tag.weightNote"],
  parcel: ["gift", "id", "shelf", "size", "tag"],
  tag: ["color", "text", "weightNote"],
  sizes: ["SIZE_UNSPECIFIED", "SMALL", "CRATE", "TUBE"],
};

test.each(
  // oxfmt-ignore
  [
    ["no visibility label", [], { tags: ["Parcels"], paths: ["/parcels/{id}"], parameters: ["id", "size", "tag.text"],
        parcel: ["id", "size", "tag"], tag: ["text"], sizes: ["SIZE_UNSPECIFIED", "SMALL"] }],
    ["the label PREVIEW", ["PREVIEW"], { tags: ["Parcels"], paths: ["/parcels/{id}", "/return", "/track"],
        parameters: ["gift", "id", "size", "tag.color", "tag.text"], parcel: ["gift", "id", "size", "tag"],
        tag: ["color", "text"], sizes: ["SIZE_UNSPECIFIED", "SMALL", "TUBE"] }],
    ["the label INTERNAL", ["INTERNAL"], { ...all, paths: all.paths.filter((path) => path !== "/track") }],
    ["both labels", ["INTERNAL", "PREVIEW"], all],
    ["access to everything", undefined, all],
  ],
)("a document for callers with %s contains only what they may see", (_name, allow, described) => {
  const services = allow === undefined ? servicesOf() : visibleServices(servicesOf(), { allow });
  const { tags, paths, components } = createOpenApi(services, { info: { title: "t", version: "1" } });
  const schemas = JSON.parse(JSON.stringify(components?.schemas));
  const propertiesOf = (name: string): string[] => Object.keys(schemas[name].properties).toSorted();
  expect({
    tags: tags?.map(({ name }) => name),
    paths: Object.keys(paths).toSorted(),
    parameters: paths["/parcels/{id}"]?.post?.parameters?.map(({ name }) => name).toSorted(),
    parcel: propertiesOf("Parcel"),
    tag: propertiesOf("Tag"),
    sizes: schemas["Size"].enum,
  }).toEqual(described);
});
