import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { readDescriptorSet } from "../src/protobuf/descriptors/index.ts";
import { createFetchGateway } from "../src/fetch/entry.ts";
import { parseHttpRules } from "../src/index.ts";
import { createOpenApi } from "../src/openapi/index.ts";
import { setOfFiles } from "../../testing/src/gateway/optional-files.ts";

// An empty body where the request is a well-known type and the rule has `body: "*"`.

// oxfmt-ignore
const types = [
  "Any", "Duration", "FieldMask", "Int64Value", "ListValue", "StringValue", "Struct", "Timestamp", "Value",
];

const files = ["any", "duration", "field_mask", "struct", "timestamp", "wrappers"];
const dependency = files.map((name) => `google/protobuf/${name}.proto`);
const typed = types.map((name) => [name, `.google.protobuf.${name}`] as const);
const method = typed.map(([name, type]) => ({ name, inputType: type, outputType: type }));
const file = { name: "echo.proto", package: "echo", syntax: "proto3", dependency, service: [{ name: "Echo", method }] };
const [echo = expect.unreachable()] = readDescriptorSet(setOfFiles([file])).services;
const rules = types.map((name) => ({ selector: `echo.Echo.${name}`, post: `/${name}`, body: "*" }));
const rest = { rules: parseHttpRules(JSON.stringify({ rules })) };
const handlers = echo.methods.map(({ localName }) => [localName, (request: unknown): unknown => request] as const);
const none: Partial<ServiceImpl<DescService>> = {};
const implementation = Object.assign(none, Object.fromEntries(handlers));
const { fetch } = createFetchGateway({ routes: (router) => void router.service(echo, implementation), rest });

async function send(name: string, body: string): Promise<{ readonly httpStatus: number; readonly json: unknown }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(new Request(`http://gateway/${name}`, { method: "POST", headers, body }));
  return { httpStatus: response.status, json: JSON.parse(await response.text()) };
}

test.each([
  { name: "Any", json: {} },
  { name: "Duration", json: "0s" },
  { name: "FieldMask", json: "" },
  { name: "Int64Value", json: "0" },
  { name: "ListValue", json: [] },
  { name: "StringValue", json: "" },
  { name: "Struct", json: {} },
  { name: "Timestamp", json: "1970-01-01T00:00:00Z" },
])("an empty body decodes to the default of google.protobuf.$name messages", async ({ name, json }) => {
  expect(await send(name, "")).toEqual({ httpStatus: 200, json });
});

test("an empty body is refused for google.protobuf.Value", async () => {
  expect(await send("Value", "null")).toEqual({ httpStatus: 200, json: null });
  const message = "not valid JSON: expected a value, got the end of the text at character 1";
  expect(await send("Value", "")).toMatchObject({ httpStatus: 400, json: { code: 3, message } });
});

test("the OpenAPI description requires a body only for google.protobuf.Value", () => {
  const { paths } = createOpenApi([echo], { info: { title: "t", version: "1" }, rest });
  expect(types.filter((name) => paths[`/${name}`]?.post?.requestBody?.required)).toEqual(["Value"]);
});
