import { create, createFileRegistry, type MessageInitShape } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, expect, test } from "vitest";
import { createGateway, createOpenApi, parseHttpRules } from "../../../src/gateway/index.ts";

// Names of fields in JSON that are no identifiers: what the description lists is accepted.

const names = ["page.size", "page", "filter[name]", "with-dash", "with space", "Upper", "ümlaut", "a.b.c", "x&y=z"];

const text = { label: Label.OPTIONAL, type: Type.STRING };
const message = { label: Label.OPTIONAL, type: Type.MESSAGE };
const file: MessageInitShape<typeof FileDescriptorProtoSchema> = {
  name: "names.proto",
  package: "names",
  syntax: "proto3",
  messageType: [
    {
      name: "Request",
      field: [
        ...names.map((jsonName, at) => ({ ...text, name: `f${at}`, number: at + 1, jsonName })),
        { ...message, name: "inner", number: 100, jsonName: "in.ner", typeName: ".names.Inner" },
        { ...message, name: "loop", number: 101, jsonName: "loop", typeName: ".names.Loop" },
      ],
    },
    { name: "Inner", field: names.map((jsonName, at) => ({ ...text, name: `f${at}`, number: at + 1, jsonName })) },
    {
      name: "Loop",
      field: [
        { ...message, name: "one", number: 1, jsonName: "a", typeName: ".names.Loop" },
        { ...message, name: "two", number: 2, jsonName: "a.a", typeName: ".names.Loop" },
      ],
    },
  ],
  service: [{ name: "Names", method: [{ name: "Get", inputType: ".names.Request", outputType: ".names.Request" }] }],
};
const set = create(FileDescriptorSetSchema, { file: [create(FileDescriptorProtoSchema, file)] });
const service = createFileRegistry(set).getService("names.Names");
if (service === undefined) throw new Error("the file has no service");

const rest = { rules: parseHttpRules('{"rules":[{"selector":"names.Names.Get","get":"/names"}]}') };

const gateway = createGateway({ routes: (router) => void router.service(service, {}), rest });
afterAll(() => gateway.close());

// Whoever is told that there is no handler has sent a request that can be read.
async function isAccepted(name: string): Promise<boolean> {
  const response = await gateway.fetch(new Request(`http://gateway/names?${encodeURIComponent(name)}=x`));
  const { code }: { readonly code: Code } = JSON.parse(await response.text());
  expect([Code.Unimplemented, Code.InvalidArgument]).toContain(code);
  return code === Code.Unimplemented;
}

const { parameters = [] } =
  createOpenApi([service], { info: { title: "t", version: "1" }, rest }).paths["/names"]?.get ?? {};

test("the description lists every field by its name in JSON", () => {
  expect(parameters.map(({ name }) => name)).toEqual([...names, ...names.map((name) => `in.ner.${name}`)]);
});

test.each(parameters)("the parameter $name of the description is accepted", async ({ name }) => {
  expect(await isAccepted(name)).toBe(true);
});

test.each(["page.siz", "in", "in.ner.page.size.x", "filter", "filter[other]"])("%s is not", async (name) => {
  expect(await isAccepted(name)).toBe(false);
});

test("a name that could be read in exponentially many ways is refused soon", async () => {
  expect(await isAccepted(`loop.${"a.".repeat(90)}b`)).toBe(false);
});
