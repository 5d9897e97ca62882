import { create, setExtension } from "@bufbuild/protobuf";
import { FieldOptionsSchema, MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { field, FieldRulesSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, test } from "vitest";
import type { GatewayOptions } from "../../src/index.ts";
import { streamDefaults, streamLimitsOf } from "../../src/mcp/options.ts";
import type { McpOptions } from "../../src/mcp/index.ts";
import { stringField } from "../../../testing/src/gateway/file-init.ts";
import { openValidation } from "../../src/validation/index.ts";
import { pageOf, serveDescribed } from "./described-tools.ts";

// Tool names and hints, and application functions that return no boolean.

const { NO_SIDE_EFFECTS, IDEMPOTENT } = MethodOptions_IdempotencyLevel;

/** Returns rules for the RPC `hostile.v1.S.A`, one for each HTTP method. */
function rulesOf(kinds: readonly string[]): object {
  const patterns = kinds.map((kind) => ({ pattern: { case: "custom", value: { kind, path: `/${kind}` } } }));
  const [first, ...additionalBindings] = patterns;
  return first === undefined ? {} : { rest: { rules: [{ selector: "hostile.v1.S.A", ...first, additionalBindings }] } };
}

const readOnly = { readOnlyHint: true };
const deletes = { destructiveHint: true, idempotentHint: true };

test.each([
  { name: "GET", kinds: ["GET"], want: readOnly },
  { name: "QUERY", kinds: ["QUERY"], want: readOnly },
  { name: "POST and GET", kinds: ["POST", "GET"], want: readOnly },
  { name: "DELETE", kinds: ["DELETE"], want: deletes },
  { name: "GET and DELETE", kinds: ["GET", "DELETE"], want: deletes },
  { name: "DELETE and NO_SIDE_EFFECTS", kinds: ["DELETE"], level: NO_SIDE_EFFECTS, want: deletes },
  { name: "PUT", kinds: ["PUT"], want: { idempotentHint: true } },
  { name: "any HTTP method (*)", kinds: ["*"], want: {} },
  { name: "only NO_SIDE_EFFECTS", kinds: [], level: NO_SIDE_EFFECTS, want: readOnly },
  { name: "only IDEMPOTENT", kinds: [], level: IDEMPOTENT, want: { idempotentHint: true } },
])("for an RPC with $name, the hints $want are set in its tool", async ({ kinds, level, want }) => {
  const rpc = { name: "A", ...(level !== undefined && { options: { idempotencyLevel: level } }) };
  const { tools } = await pageOf(serveDescribed([rpc], { gateway: rulesOf(kinds) }));
  expect(tools[0]?.["annotations"]).toEqual(want);
});

test("hints from the option tools override the HTTP method's hints", async () => {
  const hints = { readOnly: false, openWorld: false };
  const { tools } = await pageOf(
    serveDescribed([{ name: "A" }], { mcp: { tools: () => ({ hints }) }, gateway: rulesOf(["GET"]) }),
  );
  expect(tools[0]?.["annotations"]).toEqual({ readOnlyHint: false, openWorldHint: false });
});

test("a tool's schemas contain validation rules only for its input", async () => {
  const options = create(FieldOptionsSchema);
  setExtension(options, field, create(FieldRulesSchema, { type: { case: "string", value: { minLen: 2n } } }));
  const messages = [{ name: "M", field: [{ ...stringField("text", 1), options }] }];
  const mcp = { tools: ["*"], validation: await openValidation() };
  const { tools } = await pageOf(serveDescribed([{ name: "A" }], { messages, mcp }));
  expect(tools[0]).toMatchObject({
    inputSchema: { properties: { text: { type: "string", minLength: 2 } } },
    outputSchema: { properties: { text: { type: "string" } } },
  });
  expect(tools[0]).not.toHaveProperty("outputSchema.properties.text.minLength");
});

test.each([
  { name: "a package with a leading underscore", file: { package: "_7.v1" }, want: /^v1_S_A_[0-9a-f]{8}$/ },
  { name: "a long package truncated at digits", file: { package: `a${"7".repeat(80)}` }, want: /^S_A_[0-9a-f]{8}$/ },
])("for $name, the tool's name starts with a letter", async ({ file, want }) => {
  const type = `.${file.package}.M`;
  const rpc = { name: "A", inputType: type, outputType: type };
  const { tools } = await pageOf(serveDescribed([rpc], { file, mcp: { tools: [`${file.package}.*`] } }));
  expect(tools[0]?.["name"]).toMatch(want);
});

/** Returns options as a program without types passes them. */
function untyped(options: object): McpOptions {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- This is the purpose of the function.
  return options as McpOptions;
}

test.each([
  {
    name: "an async function as tools",
    options: { tools: async () => false },
    error: "tools of createMcp must be synchronous",
  },
  {
    name: "a tools function that returns nothing",
    options: { tools: () => undefined },
    error: "requires an object of options",
  },
  ...[Number.NaN, 0, -1, 1.5, Infinity, "7"].flatMap((limit) =>
    ["maxMessages", "maxBytes", "timeoutMs"].map((name) => ({
      name: `the limit ${name} ${JSON.stringify(limit)}`,
      options: { tools: [], stream: { [name]: limit } },
      error: `stream.${name} of createMcp must be a positive integer, got ${String(limit)}`,
    })),
  ),
])("options with $name are refused by createMcp", ({ options, error }) => {
  expect(() => serveDescribed([{ name: "A" }], { mcp: untyped(options) })).toThrow(error);
});

test("an undefined stream limit has the default value", () => {
  const stream = untyped({ stream: { maxMessages: undefined, maxBytes: undefined, timeoutMs: 7 } }).stream;
  expect(streamLimitsOf(stream)).toEqual({ ...streamDefaults, timeoutMs: 7 });
});

/** Comments that count how often each RPC's comment is read, which is once for each definition that is created. */
class CountedComments extends Map<string, string> {
  readonly reads: Record<string, number> = {};

  override get(name: string): string | undefined {
    if (name.startsWith("hostile.v1.S.")) this.reads[name] = (this.reads[name] ?? 0) + 1;
    return super.get(name);
  }
}

test.each([
  { name: "all callers receive the same list", isListed: undefined },
  { name: "the list depends on the caller", isListed: () => true },
])("if $name, tools/list creates each tool definition once", async ({ isListed }) => {
  const rpcs = Array.from({ length: 250 }, (_, at) => ({ name: `A${at}` }));
  const comments = new CountedComments();
  const fetch = serveDescribed(rpcs, { mcp: { tools: ["*"], comments, ...(isListed && { isListed }) } });
  const readAll = async (): Promise<string[]> => {
    const pages = [undefined, "100", "200"].map((cursor) => pageOf(fetch, cursor));
    return (await Promise.all(pages)).map(({ text }) => text);
  };
  const first = await readAll();
  expect(Object.keys(comments.reads)).toHaveLength(250);
  expect(await readAll()).toEqual(first);
  await pageOf(fetch, "50");
  expect(new Set(Object.values(comments.reads))).toEqual(new Set([1]));
});

test.each([
  { name: "true", result: true, want: ["hostile_v1_S_A"] },
  { name: "false", result: false, want: [] },
  { name: "undefined", result: undefined, want: [] },
  { name: "1", result: 1, want: [] },
])("a function isListed that returns $name results in $want from tools/list", async ({ result, want }) => {
  const mcp = untyped({ tools: ["*"], isListed: () => result });
  expect((await pageOf(serveDescribed([{ name: "A" }], { mcp }))).tools.map(({ name }) => name)).toEqual(want);
});

test("a function isListed that returns a promise fails tools/list", async () => {
  const errors: string[] = [];
  const mcp = untyped({ tools: ["*"], isListed: async () => true });
  const gateway: Partial<GatewayOptions> = { onFault: (fault) => void errors.push(String(fault)) };
  const page = await pageOf(serveDescribed([{ name: "A" }], { mcp, gateway }));
  expect(JSON.parse(page.text)).toEqual({ jsonrpc: "2.0", id: 1, error: { code: -32603, message: "internal error" } });
  expect(errors).toEqual(["TypeError: isListed must be synchronous, got a promise"]);
});
