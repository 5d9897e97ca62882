import type { DescMessage, JsonObject } from "@bufbuild/protobuf";
import ajvFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";
import { beforeAll, describe, expect, test } from "vitest";
import { createGateway } from "../../../src/index.ts";
import { createJsonMessageWriter } from "../../../src/protobuf/messages/json/index.ts";
import { createMcp } from "../../../src/mcp/index.ts";
// oxfmt-ignore
import { Dice, kitchenSinkOptions, kitchenSinkRegistry, numRunsOf, statelessRequest, testSeed
} from "@protoport/testing";
import { rollMessage } from "../../../../testing/src/gateway/random-message.ts";
import { SinkSchema } from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySchema } from "../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
// oxfmt-ignore
import { GetShelfRequestSchema, UpdateShelfRequestSchema
} from "../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { edgeValues, formsOf, mutateObject } from "./random-values.ts";

// A tool accepts the arguments that its input schema accepts, except for those in `exceptions`.

/** The arguments that a schema accepts and a tool does not, because JSON Schema cannot describe the rule. */
const exceptions: Readonly<Record<string, (error: string, sent: string) => boolean>> = {
  "a text that UTF-8 cannot encode": (error) => error.includes("not valid JSON: lone surrogate"),
  "a google.protobuf.Any of an unknown type, or with wrong members": (error) => /[ .]any[.:]/.test(error),
  "a time with a leap second, of the year 0, or in a form that only ajv accepts": (error) =>
    error.includes(" is not an RFC 3339 time from year 1 to 9999"),
  "an unknown field of a message that extensions may extend": (error) =>
    /unknown field "(?:.+\.)?a"(?:;|$)/.test(error),
  "a field that an open schema does not describe: an extension, one that is OUTPUT_ONLY, or its name in the definition":
    (_, sent) => /"(?:\[kitchensink\.v1\.[a-z]+\]|builtAt|f_int64)":/.test(sent),
};
const applied = new Set<string>();

interface ValidatedTool {
  readonly fields: readonly string[];
  isValid(value: unknown): boolean;
  refusalOf(args: JsonObject): Promise<string | undefined>;
}

type Tool = { readonly name: string; readonly inputSchema: { readonly properties: object } };
type Result = { readonly tools?: readonly Tool[]; readonly isError?: boolean; readonly content?: { text: string }[] };
type Reply = { readonly error?: { readonly message: string }; readonly result?: Result };

async function openTool(name: string, ignoreUnknownFields: boolean): Promise<ValidatedTool> {
  const { fetch } = createGateway({
    ...kitchenSinkOptions,
    jsonOptions: { registry: kitchenSinkRegistry, ignoreUnknownFields },
    mcp: createMcp({ tools: ["kitchensink.v1.*"] }),
    onFault: () => {},
  });
  async function send(method: string, params: { readonly [member: string]: unknown }): Promise<Reply> {
    const { header, path, body } = statelessRequest(method, params);
    const init = { method: "POST", headers: Object.fromEntries(header), body: String(body) };
    return JSON.parse(await (await fetch(new Request(`http://a.example${path}`, init))).text());
  }
  const { tools = [] } = (await send("tools/list", {})).result ?? {};
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) throw new Error(`there is no tool ${name}`);
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
  ajvFormats.default(ajv);
  return {
    fields: Object.keys(tool.inputSchema.properties),
    isValid: ajv.compile(tool.inputSchema),
    refusalOf: async (args) => {
      const { error, result } = await send("tools/call", { name, arguments: args });
      const text = result?.isError === true ? result.content?.[0]?.text : undefined;
      // The handler echoes the message, which may have no JSON form.
      return error?.message ?? (text?.startsWith("INTERNAL: ") === true ? undefined : text);
    },
  };
}

/** Calls a tool with the arguments that its schema accepts, and returns how many there are. */
async function callWith(tool: ValidatedTool, all: Iterable<JsonObject>): Promise<number> {
  let count = 0;
  for (const args of all) {
    if (!tool.isValid(args)) continue;
    count += 1;
    const refusal = await tool.refusalOf(args);
    if (refusal === undefined) continue;
    const sent = JSON.stringify(args);
    const name = Object.entries(exceptions).find(([, applies]) => applies(refusal, sent))?.[0];
    if (name === undefined) throw new Error(`the schema accepts ${sent}, but the tool does not: ${refusal}`);
    applied.add(name);
  }
  return count;
}

function* edgesOf(fields: readonly string[], required: JsonObject): Generator<JsonObject> {
  for (const field of fields) {
    for (const form of edgeValues.flatMap(formsOf)) yield { ...required, [field]: form };
  }
}

function* mutantsOf(desc: DescMessage, required: JsonObject): Generator<JsonObject> {
  const write = createJsonMessageWriter(desc, { registry: kitchenSinkRegistry });
  for (let run = 0; run < numRunsOf(200); run += 1) {
    const dice = new Dice(testSeed * 1_000_003 + run);
    let json: JsonObject;
    try {
      json = JSON.parse(write(rollMessage(dice, desc, 2)));
    } catch {
      // The message has no JSON form. For example, an Any has an unknown type.
      continue;
    }
    // A message with many fields is rarely valid.
    const few = Object.entries(json).filter((_, __, { length }) => dice.roll(length) < 5);
    const message = { ...required, ...Object.fromEntries(few) };
    yield message;
    for (let each = 0; each < 4; each += 1) yield mutateObject(dice, message);
  }
}

// oxfmt-ignore
const cases: readonly { name: string; desc: DescMessage; required: JsonObject; minEdges: number }[] = [
  { name: "KitchenSink_Remove", desc: SinkSchema, required: {}, minEdges: 3_000 },
  { name: "LegacySink_Keep", desc: LegacySchema, required: { name: "a" }, minEdges: 100 },
  { name: "Shelves_GetShelf", desc: GetShelfRequestSchema, required: {}, minEdges: 100 },
  { name: "Shelves_UpdateShelf", desc: UpdateShelfRequestSchema, required: { shelf: { widthMm: "1", place: {} } },
    minEdges: 15 },
];

describe.each([
  { kind: "refuses", ignoreUnknownFields: false },
  { kind: "ignores", ignoreUnknownFields: true },
])("a tool that $kind unknown fields", ({ ignoreUnknownFields }) => {
  describe.each(cases)("$name", ({ name, desc, required, minEdges }) => {
    let tool: ValidatedTool;
    beforeAll(async () => {
      tool = await openTool(`kitchensink_v1_${name}`, ignoreUnknownFields);
    });

    test("accepts each edge value that its schema accepts", async () =>
      expect(await callWith(tool, edgesOf(tool.fields, required))).toBeGreaterThan(minEdges));

    test("accepts each mutated message that its schema accepts", async () =>
      expect(await callWith(tool, mutantsOf(desc, required))).toBeGreaterThan(50));
  });
});

test("each listed exception applies to at least one message", () =>
  expect([...applied].toSorted()).toEqual(Object.keys(exceptions).toSorted()));
