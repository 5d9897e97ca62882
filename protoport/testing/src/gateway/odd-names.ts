import { create, type DescMethod, type DescService, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type, type FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { readDescriptorSet } from "../../../gateway/src/protobuf/descriptors/index.ts";
import { parseHttpRules, type RestOptions } from "../../../gateway/src/index.ts";

// A definition whose JSON names are not identifiers, or are other fields' names. protoc accepts all these names.

type FieldInit = MessageInitShape<typeof FieldDescriptorProtoSchema>;

/** JSON names with characters that are special in URLs, templates, shells or JSON. */
// oxfmt-ignore
export const specialNames: readonly string[] = [
  "page.size", "page", "filter[name]", "with-dash", "with space", "Upper", "upper", "ümlaut", "a.b.c", "x&y=z",
  "{brace}", "per%2Ecent", 'quo"te',
];

const text = { label: Label.OPTIONAL, type: Type.STRING };
const long = { label: Label.OPTIONAL, type: Type.INT64 };
const message = { label: Label.OPTIONAL, type: Type.MESSAGE };
const list = { label: Label.REPEATED, type: Type.STRING };
const map = { label: Label.REPEATED, type: Type.MESSAGE, typeName: ".names.Request.LabelsEntry" };

/** Fields whose JSON names are other fields' names, in a chain and in a cycle. */
const exchanged: readonly FieldInit[] = [
  { ...text, name: "uuid", number: 110, jsonName: "id" },
  { ...long, name: "id", number: 111, jsonName: "legacyId" },
  { ...text, name: "one", number: 112, jsonName: "two" },
  { ...long, name: "two", number: 113, jsonName: "one" },
];

const special = specialNames.map((jsonName, at) => ({ ...text, name: `f${at}`, number: at + 1, jsonName }));

const set = create(FileDescriptorSetSchema, {
  file: [
    create(FileDescriptorProtoSchema, {
      name: "names.proto",
      package: "names",
      syntax: "proto3",
      dependency: ["google/protobuf/field_mask.proto", "google/api/httpbody.proto"],
      // oxfmt-ignore
      messageType: [
        { name: "Request", field: [
            ...special,
            ...exchanged,
            { ...message, name: "inner", number: 100, jsonName: "in.ner", typeName: ".names.Inner" },
            { ...message, name: "loop", number: 101, jsonName: "loop", typeName: ".names.Loop" },
            // This JSON name equals a nested field's path.
            { ...text, name: "direct", number: 102, jsonName: "loop.text" },
            // A map whose entries' paths could be confused with other fields.
            { ...map, name: "labels", number: 103, jsonName: "labels[x]" },
            { ...map, name: "filter", number: 104, jsonName: "filter" },
            { ...map, name: "notes", number: 105, jsonName: "note[s]" },
            // A path with this JSON name can be split in two ways.
            { ...message, name: "left", number: 106, jsonName: "p", typeName: ".names.Left" },
            { ...message, name: "right", number: 107, jsonName: "p.q", typeName: ".names.Right" },
            // The JSON name is the name of a field of another kind.
            { ...text, name: "plain", number: 120, jsonName: "entries" },
            { ...map, name: "entries", number: 121, jsonName: "plain" },
            { ...text, name: "single", number: 122, jsonName: "items" },
            { ...list, name: "items", number: 123, jsonName: "single" },
          ], nestedType: [
            {
              name: "LabelsEntry",
              options: { mapEntry: true },
              field: [
                { ...text, name: "key", number: 1, jsonName: "key" },
                { ...text, name: "value", number: 2, jsonName: "value" },
              ],
            },
          ] },
        { name: "Inner", field: [...special, ...exchanged] },
        { name: "Left", field: [{ ...text, name: "value", number: 1, jsonName: "q.r" }] },
        { name: "Right", field: [{ ...text, name: "value", number: 1, jsonName: "r" }] },
        { name: "File", field: [
            { ...message, name: "body", number: 1, jsonName: "name", typeName: ".google.api.HttpBody" },
            { ...text, name: "name", number: 2, jsonName: "body" },
          ] },
        { name: "Loop", field: [
            { ...text, name: "text", number: 3, jsonName: "text" },
            { ...message, name: "one", number: 1, jsonName: "a", typeName: ".names.Loop" },
            { ...message, name: "two", number: 2, jsonName: "a.a", typeName: ".names.Loop" },
          ] },
        { name: "Update", field: [
            { ...message, name: "mask", number: 1, jsonName: "inner", typeName: ".google.protobuf.FieldMask" },
            { ...message, name: "inner", number: 2, jsonName: "mask", typeName: ".names.Inner" },
          ] },
      ],
      service: [
        {
          name: "Names",
          method: [
            ...["List", "Get", "Post", "PostInner", "Answer"].map((name) => ({
              name,
              inputType: ".names.Request",
              outputType: ".names.Request",
            })),
            { name: "Update", inputType: ".names.Update", outputType: ".names.Update" },
            { name: "Upload", inputType: ".names.File", outputType: ".names.File" },
            { name: "Watch", inputType: ".names.Request", outputType: ".names.Request", serverStreaming: true },
            { name: "Send", inputType: ".names.Request", outputType: ".names.Request", clientStreaming: true },
          ],
        },
      ],
    }),
  ],
});

/** The service whose requests have the fields with special JSON names. */
export const oddNames: DescService = serviceOf(readDescriptorSet(toBinary(FileDescriptorSetSchema, set)).services);

function serviceOf([service]: readonly DescService[]): DescService {
  if (service === undefined) throw new Error("the file has no service");
  return service;
}

/** The HTTP rules for {@link oddNames}, with the definition's names. */
export const oddRules: NonNullable<RestOptions["rules"]> = parseHttpRules(
  JSON.stringify({
    // oxfmt-ignore
    rules: [
      { selector: "names.Names.List", get: "/names" },
      { selector: "names.Names.Get", get: "/names/{uuid}/{inner.f0}/{inner.two}/{f10}",
        additional_bindings: [{ get: "/names/*/ids/{uuid}" }] },
      { selector: "names.Names.Post", post: "/names", body: "*" },
      { selector: "names.Names.PostInner", post: "/names/{id}/inner", body: "inner",
        additional_bindings: [{ post: "/names/{id}/inner/{inner.two}", body: "inner" }] },
      { selector: "names.Names.Answer", post: "/answers", body: "*", response_body: "id" },
      { selector: "names.Names.Update", patch: "/names", body: "inner" },
      { selector: "names.Names.Upload", put: "/file", body: "body", response_body: "body" },
      { selector: "names.Names.Watch", get: "/watch", response_body: "plain" },
      { selector: "names.Names.Send", post: "/send", body: "single" },
    ],
  }),
);

export function oddMethod(name: string): DescMethod {
  const method = oddNames.methods.find((each) => each.name === name);
  if (method === undefined) throw new Error(`the service has no RPC ${name}`);
  return method;
}
