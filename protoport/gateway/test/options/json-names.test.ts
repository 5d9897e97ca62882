import { create, type DescService, type JsonValue } from "@bufbuild/protobuf";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { createGateway, type RestServiceOptions } from "../../src/index.ts";
import { createOpenApi } from "../../src/openapi/index.ts";
import { readJson } from "../../src/protobuf/messages/json/index.ts";
import type { OpenApiParameter } from "../../src/openapi/open-api-document.ts";
import { oddMethod, oddNames, oddRules, specialNames } from "../../../testing/src/gateway/odd-names.ts";

// JSON names that are not identifiers, or are other fields' names. The names in the OpenAPI document are accepted for
// that field and used in responses. A JSON name takes precedence over a proto name, as in Go's protojson, C#'s
// JsonParser, ASP.NET Core (dotnet/aspnetcore#46624) and vanguard-go (#133). In queries, grpc-gateway prefers proto
// names.

const { input } = oddMethod("List");
const handlers = oddNames.methods.map(({ localName }) => [localName, (request: unknown): unknown => request] as const);
const none: Partial<ServiceImpl<DescService>> = {};
const echo = Object.assign(none, Object.fromEntries(handlers));

/** Serves the definition with handlers that echo their requests, and creates its OpenAPI document. */
function serveEcho(options: RestServiceOptions = {}, useProtoFieldName = false) {
  const rest = { rules: oddRules, service: () => ({ updateMaskFromBody: true, ...options }) };
  const given = { rest, jsonOptions: { useProtoFieldName } };
  const gateway = createGateway({ routes: (router) => void router.service(oddNames, echo), ...given });
  afterAll(() => gateway.close());
  return { gateway, document: createOpenApi([oddNames], { info: { title: "t", version: "1" }, ...given }) };
}

const strict = serveEcho();
const withMaps = serveEcho({ mapsInQuery: true });
const withJsonStreams = serveEcho({ jsonClientStreams: true });
const styles = [
  { style: "JSON names", served: strict },
  { style: "proto names", served: serveEcho({}, true) },
  { style: "JSON names, with entries of maps", served: withMaps },
];

type Served = typeof strict;

/** The request's maps, by all their names. */
const isMap = /^(?:labels|filter$|note|plain)/;

/** Sends a request, and resolves to the status and the response's body. */
async function ask({ gateway }: Served, method: string, target: string, body?: JsonValue) {
  const headers = { "content-type": "application/json" };
  const request = new Request(`http://gateway${target}`, {
    method,
    ...(body !== undefined && { headers, body: JSON.stringify(body) }),
  });
  const response = await gateway.fetch(request);
  const json: unknown = JSON.parse(await response.text());
  return { status: response.status, json };
}

const queryOf = ({ document }: Served): readonly OpenApiParameter[] => document.paths["/names"]?.get?.parameters ?? [];

/** Returns an object with a value at a path. */
const nested = ([name, ...inner]: readonly string[], value: JsonValue): JsonValue =>
  name === undefined ? value : { [name]: nested(inner, value) };

describe.each(styles)("query parameters of the OpenAPI document with $style", ({ served }) => {
  const parameters = queryOf(served).map((parameter) => {
    const names = parameter["x-field"] ?? parameter.name.split(".");
    return { parameter, name: parameter.name, names };
  });

  test.each(parameters)(
    "include $name, which sets the field $names of a request",
    async ({ parameter, name, names }) => {
      const isEntry = parameter.style === "deepObject";
      const value = parameter.schema["type"] === "array" ? ["7"] : "7";
      const key = encodeURIComponent(isEntry ? `${name}[k]` : name);
      const json = nested(isEntry ? [...names, "k"] : names, value);
      expect(await ask(served, "GET", `/names?${key}=7`)).toEqual({ status: 200, json });
    },
  );

  test("exist once for each field that a query can set", () => {
    const names = parameters.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
    // Both messages have the special names and four exchanged names. Only the request has seven more names.
    expect(names.filter((name) => !isMap.test(name))).toHaveLength(2 * (specialNames.length + 4) + 7);
  });
});

test.each([
  { name: "page.siz", why: "an incomplete name" },
  { name: "in", why: "the part of a name before its dot" },
  { name: "in.ner.page.size.x", why: "a member of a string" },
  { name: "filter", why: "a map" },
  { name: "filter[other]", why: "a map entry without mapsInQuery" },
])("the query parameter $name, $why, is refused", async ({ name }) => {
  const want = { status: 400, json: { code: Code.InvalidArgument } };
  expect(await ask(strict, "GET", `/names?${encodeURIComponent(name)}=x`)).toMatchObject(want);
});

test("a query sets map entries if the map's JSON name contains brackets", async () => {
  expect(queryOf(withMaps).map(({ name }) => name)).toContain("note[s]");
  const want = { status: 200, json: { "note[s]": { "a[b]": "7" } } };
  expect(await ask(withMaps, "GET", "/names?note[s][a[b]]=7")).toEqual(want);
});

test("a parameter name with exponentially many interpretations is refused quickly", async () =>
  expect(await ask(strict, "GET", `/names?loop.${"a.".repeat(90)}b=x`)).toMatchObject({ status: 400 }));

test("a parameter name full of brackets is refused quickly", async () =>
  expect(await ask(withMaps, "GET", `/names?${"[".repeat(8_000)}]=x`)).toMatchObject({ status: 400 }));

describe.each(styles.slice(0, 2))("body members of the OpenAPI document with $style", ({ served }) => {
  const members = Object.entries(served.document.components?.schemas?.["Inner"]?.["properties"] ?? {});
  const names = members.map(([name]) => ({ name }));

  test.each(names)("keep the name $name in responses", async ({ name }) => {
    const properties = served.document.components?.schemas?.["Request"]?.["properties"];
    const [inner = ""] = Object.keys(properties ?? {}).filter((each) => each.startsWith("in"));
    for (const body of [{ [name]: "7" }, { [inner]: { [name]: "7" } }])
      expect(await ask(served, "POST", "/names", body)).toEqual({ status: 200, json: body });
    const want = { status: 200, json: { [inner]: { [name]: "7" } } };
    expect(await ask(served, "POST", "/names/8/inner", { [name]: "7" })).toMatchObject(want);
  });

  test("exist for each field", () => expect(names).toHaveLength(specialNames.length + 4));

  test("have an example that the server accepts", async () => {
    const schema = served.document.components?.schemas?.["Inner"];
    const [example] = Array.isArray(schema?.["examples"]) ? schema["examples"] : [];
    expect(await ask(served, "POST", "/names/8/inner", example)).toMatchObject({ status: 200 });
  });
});

test.each([
  { text: '{"id":"a"}', want: { uuid: "a" } },
  { text: '{"uuid":"a"}', want: { uuid: "a" } },
  { text: '{"legacyId":"7"}', want: { id: 7n } },
  { text: '{"two":"a","one":"7"}', want: { one: "a", two: 7n } },
  { text: '{"f0":"a","f2":"b","page":"c"}', want: { f0: "a", f2: "b", f1: "c" } },
  { text: '{"direct":"a","loop":{"text":"b"}}', want: { direct: "a", loop: { text: "b" } } },
  { text: '{"loop.text":"a"}', want: { direct: "a" } },
])("JSON names take precedence over proto names when $text is decoded", ({ text, want }) => {
  for (const codegen of [true, false]) expect(readJson(input, text, { codegen })).toEqual(create(input, want));
});

test.each([
  { text: '{"id":"a","uuid":"b"}', message: "uuid: is set more than once" },
  { text: '{"page.size":"a","f0":"b"}', message: "f0: is set more than once" },
  { text: '{"legacy_id":"7"}', message: 'unknown field "legacy_id"' },
])('$text is refused with the error "$message"', ({ text, message }) => {
  expect(() => readJson(input, text, { unknownFields: "reject" })).toThrow(message);
});

test("a path with JSON names sets fields by the proto names in the rule", async () => {
  const want = { status: 200, json: { id: "a", "in.ner": { "page.size": "b", one: "7" }, "{brace}": "c" } };
  expect(await ask(strict, "GET", "/names/a/b/7/c")).toEqual(want);
});

test.each(["id", "uuid", "in.ner.page.size", "inner.f0", "inner.page.size", "in.ner.f0"])(
  "a path with JSON names refuses the query parameter %s for a field that the path sets",
  async (name) => {
    const { status, json } = await ask(strict, "GET", `/names/a/b/7/c?${name}=x`);
    const want = [400, expect.objectContaining({ message: expect.stringContaining("is already set by") })];
    expect([status, json]).toEqual(want);
  },
);

test("a path with JSON names has proto names in the OpenAPI document", () => {
  const [path = ""] = Object.keys(strict.document.paths).filter((each) => each.startsWith("/names/{uuid}"));
  expect(path).toBe("/names/{uuid}/{inner_f0}/{inner_two}/{f10}");
  expect(strict.document.paths[path]?.get?.["x-rpc"].path).toBe(
    "/names/{id}/{in%2Ener.page%2Esize}/{in%2Ener.one}/{%7Bbrace%7D}",
  );
});

test("a rule's body field is found by proto name, not JSON name", () => {
  expect(strict.document.paths["/names/{id}/inner"]?.post?.["x-rpc"].body).toBe("in.ner");
  const [parameter] = strict.document.paths["/names/{id}/inner"]?.post?.parameters ?? [];
  expect(parameter?.schema).toMatchObject({ format: "int64" });
});

test("`body` names a field by proto name in OpenAPI documents", () => {
  const content = strict.document.paths["/names"]?.patch?.requestBody?.content;
  expect(content?.["application/json"]?.schema).toMatchObject({ $ref: "#/components/schemas/Inner" });
});

test("a file upload sets the field with the rule's proto name", async () => {
  const init = { method: "PUT", headers: { "content-type": "text/plain" }, body: "a" };
  const response = await strict.gateway.fetch(new Request("http://gateway/file", init));
  expect([response.status, await response.text()]).toEqual([200, "a"]);
});

test("the OpenAPI document finds a client stream's body by proto name", () => {
  const content = withJsonStreams.document.paths["/send"]?.post?.requestBody?.content;
  expect(content?.["application/json"]?.schema).toMatchObject({ type: "array", items: { type: "string" } });
});

test("response_body names a field by its proto name", async () => {
  expect(await ask(strict, "POST", "/answers", { legacyId: "7", id: "a" })).toEqual({ status: 200, json: "7" });
  const response = strict.document.paths["/answers"]?.post?.responses["200"];
  expect(response?.content?.["application/json"]?.schema).toMatchObject({ format: "int64" });
});

// Other implementations convert the case of mask paths without a descriptor, so JSON names do not matter.
describe("an update mask", () => {
  test.each([
    { body: { "page.size": "a", two: "b", one: "7" }, paths: "f0,one,two" },
    { body: { f0: "a", uuid: "b" }, paths: "f0,uuid" },
    { body: { id: "a", legacyId: "7" }, paths: "id,uuid" },
  ])("created from the body $body contains the proto names", async ({ body, paths }) => {
    expect((await ask(strict, "PATCH", "/names", body)).json).toMatchObject({ inner: paths });
  });

  test.each([
    { mask: "f0,legacy_id", paths: "f0,legacyId" },
    { mask: "page.size", paths: "page.size" },
  ])("sent as $mask reaches the handler unchanged", async ({ mask, paths }) => {
    expect((await ask(strict, "PATCH", `/names?inner=${mask}`, {})).json).toMatchObject({ inner: paths });
  });

  test.each(["with-dash", "filter[name]", "with space"])("with the invalid path %s is refused", async (mask) => {
    const target = `/names?inner=${encodeURIComponent(mask)}`;
    expect(await ask(strict, "PATCH", target, {})).toMatchObject({ status: 400 });
  });
});
