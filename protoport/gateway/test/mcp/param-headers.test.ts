import { FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { createMcp } from "../../src/mcp/index.ts";
// oxfmt-ignore
import { exchange, type Field, type HttpRequest, initializedRequest, startGreenhouse, statelessRequest, toolNameOf,
  waterBedProcedure } from "@protoport/testing";
import { type DescribedMessage, pageOf, postTo, serveDescribed } from "./described-tools.ts";

// The option paramHeaders: clients repeat request fields in the header, which must have the values of the body.

const water = toolNameOf(waterBedProcedure);
const request = "greenhouse.v1.WaterBedRequest";
const paramHeaders = { [`${request}.note`]: "Note", [`${request}.bed`]: "Bed", [`${request}.liters`]: "Liters" };

const call = (args: object, header: readonly Field[] = []): HttpRequest =>
  statelessRequest("tools/call", { name: water, arguments: args }, header);

const note: Field = ["mcp-param-note", "eu"];

test.each<[name: string, request: HttpRequest]>([
  ["with the value of the body", call({ note: "eu" }, [note])],
  ["with a value in Base64", call({ note: "ä" }, [["mcp-param-note", "=?base64?w6Q=?="]])],
  ["with an integer", call({ liters: 42 }, [["mcp-param-liters", "42"]])],
  ["with an integer that has decimals", call({ liters: 42 }, [["mcp-param-liters", "42.0"]])],
  ["with a 64-bit integer", call({ bed: "9007199254740993" }, [["mcp-param-bed", "9007199254740993"]])],
  ["with tabs and spaces", call({ note: "a\tb c" }, [["mcp-param-note", "a\tb c"]])],
  ["with a comma", call({ note: "a, b" }, [["mcp-param-note", "a, b"]])],
  ["without the field and its header", call({})],
  ["with the zero value and without the header", call({ note: "", liters: 0 })],
  [
    "with what looks like Base64, in Base64",
    call({ note: "=?base64?ZXU=?=" }, [["mcp-param-note", `=?base64?${btoa("=?base64?ZXU=?=")}?=`]]),
  ],
  ["with null and without the header", call({ note: null })],
  ["with an empty string in Base64", call({ note: "" }, [["mcp-param-note", "=?base64??="]])],
  ["in a revision without such fields", initializedRequest("tools/call", { name: water, arguments: { note: "eu" } })],
])("a call of a tool with paramHeaders is served %s", async (_name, sent) => {
  await using greenhouse = await start();
  const { httpStatus, body } = await exchange(greenhouse.address, "1.1", sent);
  expect([httpStatus, JSON.parse(String(body))]).toMatchObject([200, { result: { structuredContent: {} } }]);
});

test.each<[name: string, request: HttpRequest, want: string]>(
  // oxfmt-ignore
  [
    ["without the header", call({ note: "eu" }), 'the header Mcp-Param-Note is missing, but the body has "eu"'],
    ["with another value", call({ note: "us" }, [note]), 'the header Mcp-Param-Note is "eu", but the body has "us"'],
    ["with a header without a field", call({}, [note]), 'the header Mcp-Param-Note is "eu", but the body has ""'],
    ["with the header twice", call({ note: "eu" }, [note, note]),
      'the header Mcp-Param-Note is repeated, but the body has "eu"'],
    ["with the header twice, joined as the body", call({ note: "eu, eu" }, [note, note]),
      'the header Mcp-Param-Note is repeated, but the body has "eu, eu"'],
    ["with what looks like Base64", call({ note: "=?base64?ZXU=?=" }, [["mcp-param-note", "=?base64?ZXU=?="]]),
      'the header Mcp-Param-Note is "=?base64?ZXU=?=", but the body has "=?base64?ZXU=?=", which must be sent in Base64'],
    ["with what looks like empty Base64", call({ note: "=?base64?=" }, [["mcp-param-note", "=?base64?="]]),
      'the header Mcp-Param-Note is "=?base64?=", but the body has "=?base64?=", which must be sent in Base64'],
    ["with bytes that are not ASCII", call({ note: "ä" }, [["mcp-param-note", "ä"]]),
      'the header Mcp-Param-Note is "ä", but the body has "ä", which must be sent in Base64'],
    ["with a 64-bit integer that has decimals", call({ bed: "42" }, [["mcp-param-bed", "42.0"]]),
      'the header Mcp-Param-Bed is "42.0", but the body has "42"'],
    ["with malformed Base64", call({ note: "eu" }, [["mcp-param-note", "=?base64?*?="]]),
      'the header Mcp-Param-Note is "=?base64?*?=", but the body has "eu"'],
    ["with another integer", call({ liters: 42 }, [["mcp-param-liters", "4"]]),
      'the header Mcp-Param-Liters is "4", but the body has "42"'],
  ],
)("a call of a tool with paramHeaders is refused %s, before the handler", async (_name, sent, want) => {
  await using greenhouse = await start();
  const { httpStatus, body } = await exchange(greenhouse.address, "1.1", sent);
  const expected = [400, { jsonrpc: "2.0", id: 1, error: { code: -32020, message: want } }];
  expect([[httpStatus, JSON.parse(String(body))], greenhouse.ran]).toEqual([expected, []]);
});

async function start(): Promise<Awaited<ReturnType<typeof startGreenhouse>> & { readonly ran: readonly string[] }> {
  const ran: string[] = [];
  const waterBed = (given: object): object => (ran.push("handler"), given);
  const mcp = createMcp({ tools: ["greenhouse.v1.*"], paramHeaders });
  return Object.assign(await startGreenhouse({ waterBed }, { mcp }), { ran });
}

function fieldOf(
  name: string,
  number: number,
  type: Type,
  typeName?: string,
): NonNullable<DescribedMessage["field"]>[number] {
  return { name, jsonName: name, number, type, ...(typeName !== undefined && { typeName }) };
}

// oxfmt-ignore
const fields = [
  fieldOf("text", 1, Type.STRING), fieldOf("flag", 2, Type.BOOL), fieldOf("small", 3, Type.UINT32),
  fieldOf("large", 4, Type.SFIXED64), fieldOf("bytes", 5, Type.BYTES), fieldOf("ratio", 6, Type.DOUBLE),
  fieldOf("color", 7, Type.ENUM, ".hostile.v1.M.Color"), fieldOf("next", 8, Type.MESSAGE, ".hostile.v1.M"),
  { ...fieldOf("texts", 9, Type.STRING), label: 3 },
];
const enumType = [{ name: "Color", value: [{ name: "NONE", number: 0 }] }];
const messages: readonly DescribedMessage[] = [{ name: "M", field: fields, enumType }];

test("x-mcp-header is in the fields of the request alone", async () => {
  const names = { text: "Text", flag: "Flag", small: "Small", large: "Large" };
  const byField = Object.fromEntries(Object.entries(names).map(([name, header]) => [`hostile.v1.M.${name}`, header]));
  const fetch = serveDescribed([{ name: "A" }], { messages, mcp: { tools: ["*"], paramHeaders: byField } });
  const [tool] = (await pageOf(fetch)).tools;
  expect(tool?.["inputSchema"]).toMatchObject({
    properties: {
      text: { type: "string", "x-mcp-header": "Text" },
      flag: { type: "boolean", "x-mcp-header": "Flag" },
      small: { type: "integer", "x-mcp-header": "Small" },
      large: { type: "string", "x-mcp-header": "Large" },
    },
  });
  expect(JSON.stringify(tool).split("x-mcp-header")).toHaveLength(5);
});

test("a field that a truncated schema lacks is listed if clients repeat it", async () => {
  const field = Array.from({ length: 2_100 }, (_, at) => fieldOf(`f${at}`, at + 1, Type.STRING));
  const mcp = { tools: ["*"], paramHeaders: { "hostile.v1.M.f2050": "Last" } };
  const [tool] = (await pageOf(serveDescribed([{ name: "A" }], { messages: [{ name: "M", field }], mcp }))).tools;
  expect(tool).toHaveProperty("inputSchema.properties.f2050", { type: "string", "x-mcp-header": "Last" });
  expect(tool).not.toHaveProperty("inputSchema.properties.f2049");
});

test.each(
  // oxfmt-ignore
  [
    { names: { "hostile.v1.M.bytes": "A" }, want: "hostile.v1.M.bytes must be a string, a boolean or an integer" },
    { names: { "hostile.v1.M.ratio": "A" }, want: "hostile.v1.M.ratio must be a string, a boolean or an integer" },
    { names: { "hostile.v1.M.color": "A" }, want: "hostile.v1.M.color must be a string, a boolean or an integer" },
    { names: { "hostile.v1.M.next": "A" }, want: "hostile.v1.M.next must be a string, a boolean or an integer" },
    { names: { "hostile.v1.M.texts": "A" }, want: "hostile.v1.M.texts must be a string, a boolean or an integer" },
    { names: { "hostile.v1.M.none": "A" }, want: "hostile.v1.M.none must be a field of a tool's request" },
    { names: { "hostile.v1.M.text": "" },
      want: 'hostile.v1.M.text must be the end of a header name with up to 64 characters, got ""' },
    { names: { "hostile.v1.M.text": "a b" },
      want: 'hostile.v1.M.text must be the end of a header name with up to 64 characters, got "a b"' },
    { names: { "hostile.v1.M.text": "a".repeat(65) },
      want: `hostile.v1.M.text must be the end of a header name with up to 64 characters, got "${"a".repeat(64)}…"` },
    { names: { "hostile.v1.M.text": "Name", "hostile.v1.M.flag": "name" },
      want: 'hostile.v1.M.flag must have a name of its own, got "name"' },
  ],
)("paramHeaders $names is refused at start", ({ names, want }) => {
  const mcp = { tools: ["*"], paramHeaders: names };
  expect(() => serveDescribed([{ name: "A" }], { messages, mcp })).toThrow(`paramHeaders: ${want}`);
});

const withPresence: DescribedMessage = {
  name: "M",
  field: [
    { ...fieldOf("region", 1, Type.STRING), label: 1, defaultValue: "eu" },
    { ...fieldOf("flag", 2, Type.BOOL), label: 1 },
  ],
};

test.each<[name: string, httpStatus: number, args: object, header: Field[]]>([
  ["an unset field with a default, and without the header", 200, {}, []],
  ["an unset field, and the header with its default", 200, {}, [["mcp-param-region", "eu"]]],
  ["an unset field, and the header with another value", 400, {}, [["mcp-param-region", "us"]]],
  ["an empty string without the header", 400, { region: "" }, []],
  ["false without the header", 400, { flag: false }, []],
  ["false with the header", 200, { flag: false }, [["mcp-param-flag", "false"]]],
  ["a boolean that has decimals", 400, { flag: true }, [["mcp-param-flag", "true.0"]]],
])("a proto2 request with %s gets %i", async (_name, httpStatus, args, header) => {
  const mcp = { tools: ["*"], paramHeaders: { "hostile.v1.M.region": "Region", "hostile.v1.M.flag": "Flag" } };
  const fetch = serveDescribed([{ name: "A" }], { messages: [withPresence], file: { syntax: "proto2" }, mcp });
  const sent = statelessRequest("tools/call", { name: "hostile_v1_S_A", arguments: args }, header);
  expect(await postTo(fetch, sent)).toMatchObject({ httpStatus });
});

test.each([
  { given: 5, want: 'option "paramHeaders" of createMcp must be an object, got number' },
  { given: null, want: 'option "paramHeaders" of createMcp must be an object, got null' },
  { given: { a: undefined }, want: 'option "paramHeaders.a" of createMcp must be a string, got undefined' },
])("createMcp refuses paramHeaders $given", ({ given, want }) => {
  const create = (): unknown => Reflect.apply(createMcp, undefined, [{ tools: [], paramHeaders: given }]);
  expect(create).toThrow(expect.objectContaining({ code: "ERR_OPTIONS", message: want }));
});
