import { create } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type as Type, MessageOptionsSchema } from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, test } from "vitest";
import { postMcp, statelessRequest } from "../../../../../testing/src/gateway/mcp.ts";
import type { FetchHandler } from "../../../../src/index.ts";
// oxfmt-ignore
import { type DescribedMessage, type DescribedOptions, pageOf, postTo, serveDescribed, type ToolPage
} from "../../../mcp/described-tools.ts";

// Schemas for definitions that are large or hostile, and for requests with unknown fields.

type DescribedField = NonNullable<DescribedMessage["field"]>[number];

function stringField(number: number, name = `f${number}`): DescribedField {
  return { name, jsonName: name, number, type: Type.STRING };
}

/** Returns messages `M`, `M1`, `M2` and so on, each with a field for the next one, except the last one. */
const chainOf = (count: number, fieldsEach: number): readonly DescribedMessage[] =>
  Array.from({ length: count }, (_, at) => {
    const field = Array.from({ length: fieldsEach }, (_each, number) => stringField(number + 1));
    const next = { name: "f1", jsonName: "f1", number: 1, type: Type.MESSAGE, typeName: `.hostile.v1.M${at + 1}` };
    return { name: at === 0 ? "M" : `M${at}`, field: at === count - 1 ? field : [next, ...field.slice(1)] };
  });

/** A message whose schema is too long: each of the 50 members in a oneof refuses the others by their long names. */
const longFields = Array.from({ length: 1_000 }, (_, at) => {
  return { ...stringField(at + 1, `${"n".repeat(90)}${at}`), oneofIndex: Math.floor(at / 50) };
});
const oneofDecl = Array.from({ length: 20 }, (_, at) => ({ name: `o${at}` }));
const longNames: readonly DescribedMessage[] = [{ name: "M", field: longFields, oneofDecl }];

/** Fields that a schema omits, because their names have invisible characters. */
const omittedFields = Array.from({ length: 2_000 }, (_, at) => {
  return { ...stringField(at + 1, `f${at}`), jsonName: `\u200b${at}` };
});

const rpcs = (count: number): { name: string }[] => Array.from({ length: count }, (_, at) => ({ name: `A${at}` }));

/** Returns how many fields in a schema and its definitions are strings. */
const countStrings = (schema: unknown): number => JSON.stringify(schema).split('{"type":"string"}').length - 1;

test.each([
  { name: "2,000 fields of 200 messages", messages: chainOf(200, 10), outcome: "complete", want: 1_801 },
  { name: "3,000 messages", messages: chainOf(3_000, 1), outcome: "truncated", want: 0 },
])("a schema with $name is $outcome in tools/list", async ({ messages, outcome, want }) => {
  const { inputSchema, outputSchema } = (await pageOf(serveDescribed(rpcs(1), { messages }))).tools[0] ?? {};
  expect([inputSchema, outputSchema].map(countStrings)).toEqual([want, want]);
  expect(JSON.stringify(inputSchema).includes("Not all fields are listed here")).toBe(outcome === "truncated");
});

test("a schema lists no field after 2,000 fields whose names it omits", async () => {
  const messages = [{ name: "M", field: [...omittedFields, stringField(2_001, "last")] }];
  expect(countStrings((await pageOf(serveDescribed(rpcs(1), { messages }))).tools[0]?.["inputSchema"])).toBe(0);
});

test("a schema lists 2,000 enum values only if no field needs their place", async () => {
  const value = Array.from({ length: 2_000 }, (_, number) => ({ name: `V${number}`, number }));
  const field = [{ name: "e", jsonName: "e", number: 1, type: Type.ENUM, typeName: ".hostile.v1.M.E" }];
  const messages = [{ name: "M", field, enumType: [{ name: "E", value }] }];
  const { tools } = await pageOf(serveDescribed(rpcs(1), { messages }));
  expect(tools[0]?.["inputSchema"]).toMatchObject({
    properties: { e: { $ref: "#/$defs/M.E" } },
    $defs: { "M.E": { type: "string", $comment: "The 2000 names of this enum are too many to list." } },
  });
});

test("a schema with an excessively long JSON text has fewer fields in tools/list", async () => {
  const { tools } = await pageOf(serveDescribed(rpcs(1), { messages: longNames }));
  expect(JSON.stringify(tools[0]?.["inputSchema"]).length).toBeLessThanOrEqual(256 * 1024);
  expect(countStrings(tools[0]?.["inputSchema"])).toBeGreaterThan(40);
});

async function pagesOf(fetch: FetchHandler): Promise<readonly ToolPage[]> {
  const pages = [await pageOf(fetch)];
  for (let cursor = pages[0]?.nextCursor; cursor !== undefined; cursor = pages.at(-1)?.nextCursor)
    pages.push(await pageOf(fetch, cursor));
  return pages;
}

/** A message whose schema is long, because each of its 50 fields refuses the others by their names. */
const oneofOfLongNames = {
  name: "M",
  field: Array.from({ length: 50 }, (_, at) => ({ ...stringField(at + 1, `${"n".repeat(190)}${at}`), oneofIndex: 0 })),
  oneofDecl: [{ name: "o" }],
};

test.each([
  { name: "10,000 fields", messages: chainOf(1, 1_900) },
  { name: "10,000 fields whose names it omits", messages: [{ name: "M", field: omittedFields }] },
  { name: "1 MiB of schemas", messages: [oneofOfLongNames] },
])("after $name, tools/list starts a new page", async ({ messages }) => {
  const pages = await pagesOf(serveDescribed(rpcs(20), { messages }));
  expect(pages.map(({ tools }) => tools.length)).toEqual([3, 3, 3, 3, 3, 3, 2]);
  expect(new Set(pages.flatMap(({ tools }) => tools.map(({ name }) => name))).size).toBe(20);
});

test("a schema omits names with invisible characters, long names and links", async () => {
  // The option openapiv2_schema (1042) with external_docs (5), which has a URL (2).
  const url = new BinaryWriter().tag(2, WireType.LengthDelimited).string("https://obey.example").finish();
  const docs = new BinaryWriter().tag(5, WireType.LengthDelimited).bytes(url).finish();
  const data = new BinaryWriter().bytes(docs).finish();
  const options = create(MessageOptionsSchema);
  options.$unknown = [{ no: 1042, wireType: WireType.LengthDelimited, data }];
  const names = ["plain", "hidden\u{E0041}", "turned\u202E", "x".repeat(201), "x".repeat(200)];
  const field = names.map((jsonName, at) => ({ ...stringField(at + 1), jsonName, oneofIndex: 0 }));
  const messages = [{ name: "M", field, oneofDecl: [{ name: "o" }], options }];
  const page = await pageOf(serveDescribed(rpcs(1), { messages }));
  const properties = { plain: { type: "string" }, ["x".repeat(200)]: { type: "string" } };
  expect(page.tools[0]?.["inputSchema"]).toMatchObject({ properties });
  expect(page.text).not.toMatch(/hidden|turned|x{201}|obey|externalDocs/);
});

const strict: DescribedOptions["gateway"] = { jsonOptions: { ignoreUnknownFields: false } };
const wrapped = { name: "W", inputType: ".google.protobuf.StringValue" };

describe("a tool of an RPC that refuses unknown fields", () => {
  const fetch = serveDescribed([...rpcs(1), wrapped], { messages: chainOf(2, 2), gateway: strict });

  test("forbids additional properties only in its input schema", async () => {
    const [tool, wrapping] = (await pageOf(fetch)).tools;
    const want = { additionalProperties: false, $defs: { M1: { additionalProperties: false } } };
    expect(tool?.["inputSchema"]).toMatchObject(want);
    expect(JSON.stringify(tool?.["outputSchema"])).not.toContain("additionalProperties");
    const value = { properties: { value: { type: "string" } }, required: ["value"] };
    expect(wrapping?.["inputSchema"]).toEqual({ type: "object", ...value, additionalProperties: false });
  });

  test.each([
    ["an unknown argument", { value: "a", other: 1 }, 'there must be no argument other than "value"'],
    ["a missing argument", { other: 1 }, 'the argument "value" is missing'],
  ])("refuses %s if its input is a wrapper message", async (_name, args, want) => {
    const { text } = await postTo(fetch, statelessRequest("tools/call", { name: "hostile_v1_S_W", arguments: args }));
    const result = { isError: true, content: [{ text: `INVALID_ARGUMENT: ${want}` }] };
    expect(JSON.parse(text)).toMatchObject({ result });
  });
});

test("a wrapper message's tool refuses an argument that is set twice", async () => {
  const fetch = serveDescribed([wrapped]);
  const params = '{"name":"hostile_v1_S_W","arguments":{"value":"a","other":1,"other":2}}';
  const { text } = await postTo(fetch, postMcp(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`));
  expect(text).toContain('INVALID_ARGUMENT: key \\"other\\" is set more than once');
});

test("a tool of an RPC that ignores unknown fields accepts additional arguments", async () => {
  const fetch = serveDescribed([...rpcs(1), wrapped], { messages: chainOf(2, 2) });
  expect((await pageOf(fetch)).text).not.toContain("additionalProperties");
  const request = statelessRequest("tools/call", { name: "hostile_v1_S_W", arguments: { value: "a", other: 1 } });
  expect((await postTo(fetch, request)).text).toContain("UNIMPLEMENTED");
});

test("10,000 tools have different valid names, and are listed in pages", async () => {
  const fetch = serveDescribed(Array.from({ length: 10_000 }, (_, at) => ({ name: `${"Get".repeat(at % 30)}M${at}` })));
  const names = new Set<unknown>();
  let pages = 0;
  for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages += 1) {
    const page = await pageOf(fetch, cursor);
    for (const { name } of page.tools) names.add(name);
    cursor = page.nextCursor;
  }
  expect([pages, names.size]).toEqual([100, 10_000]);
  expect([...names].filter((name) => !/^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(String(name)))).toEqual([]);
});
