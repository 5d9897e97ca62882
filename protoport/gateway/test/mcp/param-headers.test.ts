import { FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { createMcp } from "../../src/mcp/index.ts";
import { initializedRequest, statelessRequest } from "../../../testing/src/gateway/mcp.ts";
import type { Field, HttpRequest } from "../../../testing/src/http/exchange.ts";
import { startGreenhouse, waterBedProcedure } from "../../../testing/src/gateway/greenhouse.ts";
import { toolNameOf } from "../../../testing/src/gateway/mcp.ts";
import { exchange } from "../../../testing/src/gateway/wire-format.ts";
import { type DescribedMessage, pageOf, serveDescribed } from "./described-tools.ts";

// The option paramHeaders: clients repeat request fields in the header, which must have the values of the body.

const water = toolNameOf(waterBedProcedure);
const request = "greenhouse.v1.WaterBedRequest";
const paramHeaders = { [`${request}.note`]: "Note", [`${request}.bed`]: "Bed", [`${request}.liters`]: "Liters" };

function call(args: object, header: readonly Field[] = []): HttpRequest {
  return statelessRequest("tools/call", { name: water, arguments: args }, header);
}

const note: Field = ["mcp-param-note", "eu"];

describe("a call of a tool with paramHeaders", () => {
  test.each<[name: string, request: HttpRequest]>([
    ["with the value of the body", call({ note: "eu" }, [note])],
    ["with a value in Base64", call({ note: "ä" }, [["mcp-param-note", "=?base64?w6Q=?="]])],
    ["with an integer", call({ liters: 42 }, [["mcp-param-liters", "42"]])],
    ["with an integer that has decimals", call({ liters: 42 }, [["mcp-param-liters", "42.0"]])],
    ["with a 64-bit integer", call({ bed: "9007199254740993" }, [["mcp-param-bed", "9007199254740993"]])],
    ["without the field and its header", call({})],
    ["with null and without the header", call({ note: null })],
    ["with an empty string in Base64", call({ note: "" }, [["mcp-param-note", "=?base64??="]])],
    ["in a revision without such fields", initializedRequest("tools/call", { name: water, arguments: { note: "eu" } })],
  ])("is served %s", async (_name, sent) => {
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
      ["with the header twice", call({ note: "eu" }, [note, note]), 'the header Mcp-Param-Note is "eu, eu", but the body has "eu"'],
      ["with malformed Base64", call({ note: "eu" }, [["mcp-param-note", "=?base64?*?="]]), 'the header Mcp-Param-Note is "=?base64?*?=", but the body has "eu"'],
      ["with another integer", call({ liters: 42 }, [["mcp-param-liters", "4"]]), 'the header Mcp-Param-Liters is "4", but the body has "42"'],
    ],
  )("is refused %s, before the handler", async (_name, sent, want) => {
    await using greenhouse = await start();
    const { httpStatus, body } = await exchange(greenhouse.address, "1.1", sent);
    expect([httpStatus, JSON.parse(String(body))]).toEqual([
      400,
      { jsonrpc: "2.0", id: 1, error: { code: -32020, message: want } },
    ]);
    expect(greenhouse.ran).toEqual([]);
  });
});

async function start(): Promise<Awaited<ReturnType<typeof startGreenhouse>> & { readonly ran: readonly string[] }> {
  const ran: string[] = [];
  const waterBed = (given: object): object => {
    ran.push("handler");
    return given;
  };
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

const messages: readonly DescribedMessage[] = [
  {
    name: "M",
    field: [
      fieldOf("text", 1, Type.STRING),
      fieldOf("flag", 2, Type.BOOL),
      fieldOf("small", 3, Type.UINT32),
      fieldOf("large", 4, Type.SFIXED64),
      fieldOf("bytes", 5, Type.BYTES),
      fieldOf("ratio", 6, Type.DOUBLE),
      fieldOf("color", 7, Type.ENUM, ".hostile.v1.M.Color"),
      fieldOf("next", 8, Type.MESSAGE, ".hostile.v1.M"),
      { ...fieldOf("texts", 9, Type.STRING), label: 3 },
    ],
    enumType: [{ name: "Color", value: [{ name: "NONE", number: 0 }] }],
  },
];

test("x-mcp-header is in the request's own fields, and not in messages that the request refers to", async () => {
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

test.each([
  { names: { "hostile.v1.M.bytes": "A" }, want: "hostile.v1.M.bytes must be a string, a boolean or an integer" },
  { names: { "hostile.v1.M.ratio": "A" }, want: "hostile.v1.M.ratio must be a string, a boolean or an integer" },
  { names: { "hostile.v1.M.color": "A" }, want: "hostile.v1.M.color must be a string, a boolean or an integer" },
  { names: { "hostile.v1.M.next": "A" }, want: "hostile.v1.M.next must be a string, a boolean or an integer" },
  { names: { "hostile.v1.M.texts": "A" }, want: "hostile.v1.M.texts must be a string, a boolean or an integer" },
  { names: { "hostile.v1.M.none": "A" }, want: "hostile.v1.M.none must be a field of a tool's request" },
  { names: { "hostile.v1.M.text": "" }, want: 'hostile.v1.M.text must be the end of a header name, got ""' },
  { names: { "hostile.v1.M.text": "a b" }, want: 'hostile.v1.M.text must be the end of a header name, got "a b"' },
  {
    names: { "hostile.v1.M.text": "Name", "hostile.v1.M.flag": "name" },
    want: 'hostile.v1.M.flag must have a name of its own, got "name"',
  },
])("paramHeaders $names is refused at start", ({ names, want }) => {
  const mcp = { tools: ["*"], paramHeaders: names };
  expect(() => serveDescribed([{ name: "A" }], { messages, mcp })).toThrow(`paramHeaders: ${want}`);
});
