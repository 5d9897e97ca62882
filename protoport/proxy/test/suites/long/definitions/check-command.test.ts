import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, describe, expect, test } from "vitest";
import { switchNames, toRestOptions } from "../../../../src/definitions/definition-flags.ts";
import { createGateway, parseHttpRules } from "../../../../../gateway/src/index.ts";
// oxfmt-ignore
import { descriptorSetOf, file_files_v1_files, file_kitchensink_v1_kitchen_sink, file_orders_v1_orders, KitchenSink,
  runProxyCommand, stringField } from "@protoport/testing/proxy";
import { file_kitchensink_v1_legacy } from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { file_kitchensink_v1_shelves } from "../../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { file_streams_v1_stream_service } from "../../../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { createTempFolder, projectFolder, runProgram } from "@protoport/testing/process";
import { setOfFiles } from "../../../support/set-of-files.ts";

const folder = createTempFolder();
const { write } = folder;
afterAll(() => folder[Symbol.dispose]());
const orders = write("orders.binpb", descriptorSetOf(file_orders_v1_orders));
const sinks = [file_kitchensink_v1_kitchen_sink, file_kitchensink_v1_legacy, file_kitchensink_v1_shelves];
const all = [file_files_v1_files, ...sinks, file_streams_v1_stream_service];
const everything = write("everything.binpb", descriptorSetOf(...all));
const unbound = "kitchensink.v1.KitchenSink.Unbound";

function withRules(...rules: readonly object[]): readonly string[] {
  return ["--rules", write("rules.json", JSON.stringify({ rules }))];
}

const check = (...args: readonly string[]) => runProxyCommand("check", ...args);

test("check counts a valid definition's services and bindings", async () =>
  expect(await check(orders)).toEqual({
    exitCode: 0,
    errors: "",
    printed: `${orders}: 1 service, 1 RPC\n\nThe gateway would start: 1 service with 1 REST binding.`,
  }));

test("check counts the RPCs without an HTTP rule", async () => {
  const { printed } = await check(everything, "--service", KitchenSink.typeName);
  expect(printed).toMatch(
    /\nThe gateway would start: 1 service with \d+ REST bindings\.\n1 RPC without a rule: callable as JSON with POST/,
  );
});

test("check lists grpc-gateway options that a description does not use", async () => {
  const file = structuredClone(file_orders_v1_orders.proto);
  const responses = { no: 1042, wireType: 2, data: Uint8Array.of(2, 9 * 8 + 2, 0) };
  for (const { method } of file.service) for (const rpc of method) rpc.options?.$unknown?.push(responses);
  const set = descriptorSetOf({ ...file_orders_v1_orders, proto: file });
  expect((await check(write("options.binpb", set))).printed).toMatch(
    /\nOpenAPI documents of .*:\n\n {2}openapiv2_operation\.responses of orders\.v1\.OrderService\.DeleteOrder$/,
  );
});

test("protoport runs check, and prints usage for wrong arguments", async () => {
  const file = join(projectFolder, "protoport/proxy/src/command/main.ts");
  expect(await runProgram(process.execPath, [file, "check", orders])).toMatchObject({
    exitCode: 0,
    stdout: `${(await check(orders)).printed}\n`,
  });
  for (const args of [[], ["check"], ["chekc"]])
    expect(await runProgram(process.execPath, [file, ...args])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/^protoport: .*\nTry 'protoport.* --help'\.\n$/),
    });
});

test("toRestOptions enables the options for every service", () => {
  const { service, ...others } = toRestOptions(new Set(["lenient", "fullyDecodeReservedExpansion"]));
  const ofAll = { profile: "strict", fullyDecodeReservedExpansion: true };
  expect([service?.(KitchenSink), others]).toEqual([{ lenient: true }, ofAll]);
  expect(toRestOptions(new Set(), "google")).toMatchObject({ profile: "google" });
});

describe("a definition with an invalid HTTP rule", () => {
  const rules = [
    { selector: unbound, get: "/a/{nope}" },
    { selector: "kitchensink.v1.KitchenSink.Root", get: "/b/{ids}" },
    { selector: "kitchensink.v1.KitchenSink.Close", get: "/b/{" },
  ];

  test("is refused with one line per problem that createGateway throws", async () => {
    const { exitCode, printed } = await check(everything, ...withRules(...rules), "--service", KitchenSink.typeName);
    let thrown = "";
    try {
      const httpRules = parseHttpRules(JSON.stringify({ rules }));
      createGateway({ routes: (router) => router.service(KitchenSink, {}), rest: { rules: httpRules } });
    } catch (error) {
      thrown = String(error);
    }
    const [, ...problems] = thrown.split("\n");
    expect(problems).toHaveLength(3);
    const listed = problems.map((problem) => `  ${problem}`);
    const reasons = ["The gateway would not start, for 3 reasons:", "", ...listed, ""];
    expect(printed).toContain(`\n${reasons.join("\n")}\nrest.rules overrides a rule that you cannot change`);
    expect(printed).not.toContain("without a rule");
    expect(exitCode).toBe(1);
  });

  test("is accepted when flags exclude the invalid rule", async () => {
    const args = withRules(rules[0] ?? {});
    expect((await check(everything, ...args)).exitCode).toBe(1);
    expect((await check(everything, ...args, "--omit", unbound)).exitCode).toBe(0);
    expect((await check(everything, ...args, "--service", "files.*")).exitCode).toBe(0);
  });
});

test("--rules accepts JSON and YAML service configs, ignoring other services' rules", async () => {
  const mixin = { selector: "google.longrunning.Operations.GetOperation", get: "/y" };
  const http = { rules: [{ selector: unbound, get: "/x" }, mixin] };
  const config = write("service.json", JSON.stringify({ type: "google.api.Service", configVersion: 3, http }));
  const yaml = write("service.yaml", `http:\n  rules:\n  - selector: ${unbound}\n    get: /x # for now\n`);
  for (const file of [config, yaml])
    expect(await check(everything, "--service", KitchenSink.typeName, "--rules", file)).toMatchObject({
      exitCode: 0,
      printed: expect.not.stringContaining("without a rule"),
    });
});

test("--rules rejects JSON with duplicate members", async () => {
  const rules = write("twice.json", `{"rules": [{"selector": "${unbound}", "get": "/a", "get": "/b"}]}`);
  const { exitCode, errors } = await check(everything, "--rules", rules);
  expect([exitCode, errors]).toEqual([2, expect.stringContaining("cannot read the HTTP rules of ")]);
});

describe("protoport check", () => {
  const set = descriptorSetOf(file_orders_v1_orders);
  const options = create(MethodOptionsSchema);
  // A google.api.http option whose bytes are not an HttpRule.
  options.$unknown = [{ no: 72295728, wireType: 2, data: new Uint8Array([2, 0xff, 0xff]) }];
  const method = { name: "R", inputType: ".a.M", outputType: ".a.M", options };
  const setWith = (messages: readonly string[]): Uint8Array => {
    const messageType = messages.map((name) => ({ name }));
    return setOfFiles({ name: "a.proto", package: "a", messageType, service: [{ name: "S", method: [method] }] });
  };

  test.each(
    // oxfmt-ignore
    [
      ["an empty file", "", 'is empty. Create it with "buf build'],
      ["a .proto file", 'syntax = "proto3";', "it is text. Create it"],
      ["a descriptor set in JSON", '{"file": []}', "it is text"],
      ["text that begins with line breaks", "\n\n\nhello, world\n", "it is text"],
      ["another binary file", new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 0]),
        "it does not start with a FileDescriptorProto"],
      ["a compressed descriptor set", gzipSync(set), "it is compressed with gzip"],
      ["a truncated descriptor set", set.subarray(0, set.length / 2), "it is truncated or not protobuf"],
      ["a file without services", descriptorSetOf(file_kitchensink_v1_legacy.dependencies[0] ?? file_files_v1_files),
        "declares no services"],
      ["a file whose types are missing", setWith([]), "a.S is omitted: the type a.M is missing. "],
      ["an annotation that is not an HttpRule", setWith(["M"]), "cannot check the definition: "],
    ],
  )("given %s as the input file, exits with 2", async (_name, content, message) => {
    const { exitCode, printed, errors } = await check(write("set.binpb", content));
    expect({ exitCode, printed }).toEqual({ exitCode: 2, printed: "" });
    expect(errors).toContain(message);
    expect(errors).not.toMatch(/\n {4}at /);
  });

  test("names the missing import and the npm package that contains it", async () => {
    const date = { name: "date", number: 1, type: 11, label: 1, typeName: ".google.type.Date" };
    const rpc = { name: "R", inputType: ".a.M", outputType: ".a.M" };
    const dependency = ["google/api/client.proto", "google/type/date.proto"];
    const parts = { messageType: [{ name: "M", field: [date] }], service: [{ name: "S", method: [rpc] }] };
    const incomplete = setOfFiles({ name: "a.proto", package: "a", dependency, ...parts });
    const { exitCode, errors } = await check(write("set.binpb", incomplete));
    expect(exitCode).toBe(2);
    expect(errors).toBe(
      "a.S is omitted: the type google.type.Date of a field of a.M is missing; missing import: google/type/date.proto. " +
        'Create it with "buf build -o set.binpb" or "protoc --include_imports --descriptor_set_out=set.binpb". ' +
        'Files in google/ are in the package google-proto-files: run "npm install --save-dev google-proto-files"',
    );
  });

  test("accepts a set without well-known imports", async () => {
    const { exitCode, printed, errors } = await check(write("set.binpb", setOfFiles(file_orders_v1_orders.proto)));
    expect([exitCode, errors]).toEqual([0, ""]);
    expect(printed).toContain("The gateway would start: 1 service with 1 REST binding.");
  });

  test.each(
    // oxfmt-ignore
    [
      ["a folder", ["/"], "cannot read /: EISDIR"],
      ["a missing file", ["nowhere.binpb"], "cannot read nowhere.binpb: ENOENT"],
      ["a missing file argument", [], "usage: protoport check SET "],
      ["two file arguments", [orders, orders], "usage: protoport check SET "],
      ["an unknown flag", [orders, "--strict"], 'unknown flag "--strict" of "check"'],
      ["an unknown --rest option", [orders, "--rest", "loose"], "protoport: --rest must be one of lenient, "],
      ["an unknown --rest-profile", [orders, "--rest-profile", "gogle"],
        '--rest-profile must be one of strict, google, grpc-gateway, envoy, a2a, got "gogle"'],
      ["a --service that matches nothing", [orders, "--service", "a.B"], `${orders} has no service that matches a.B`],
      ["a rules file larger than 4 MiB", [orders, "--rules", write("large.yaml", " ".repeat(4 * 1024 * 1024 + 1))],
        "large.yaml is larger than 4194304 bytes"],
      ["YAML rules with an alias", [orders, "--rules", write("a.yaml", "http:\n  rules: *a\n")],
        "/a.yaml: line 2, column 10: *a is an alias"],
    ],
  )("given %s, exits with 2", async (_name, args, message) => {
    const { exitCode, printed, errors } = await check(...args);
    expect({ exitCode, printed }).toEqual({ exitCode: 2, printed: "" });
    expect(errors).toContain(message);
  });

  test("reports a file larger than 200 MiB, without reading it completely", async () =>
    expect((await check("/dev/zero")).errors).toBe("/dev/zero is larger than 209715200 bytes"));
});

/** Returns a definition with services `a.b.C` and `a.B_C`, whose RPCs have the same tool names. */
function sameNames(): string {
  const files = ["a.b", "a"].map((name, at) => {
    const types = { inputType: `.${name}.M`, outputType: `.${name}.M` };
    const method = [
      { name: "Get", ...types },
      { name: "Send", ...types, clientStreaming: true },
    ];
    const service = [{ name: at === 0 ? "C" : "b_C", method }];
    return { name: `${at}.proto`, package: name, syntax: "proto3", messageType: [{ name: "M" }], service };
  });
  return write("same.binpb", setOfFiles(...files));
}

test("--mcp lists RPCs that cannot be tools, and tools with a hash", async () => {
  const { exitCode, printed } = await check(sameNames(), "--mcp", "a.*", "--mcp", "c.*");
  // oxfmt-ignore
  expect([exitCode, printed.split("\n\n").at(-1)?.split("\n")]).toEqual([0, ["2 RPCs would be tools of AI agents.",
    "  a.b.C.Send is not a tool: its client sends a stream", "  a.b_C.Send is not a tool: its client sends a stream",
    expect.stringMatching(/^  a\.b_C\.Get is the tool a_b_C_Get_[0-9a-f]{8}$/), "  --mcp c.* matches no RPC"]]);
  const { printed: json } = await check(everything, "--mcp", "streams.*", "--json");
  const names = { "streams.v1.StreamService.Count": "streams_v1_StreamService_Count" };
  const tools = { names, clientStreams: ["streams.v1.StreamService.Echo"], unmatched: [] };
  expect(JSON.parse(json)).toMatchObject({ tools });
});

test("--mcp names the RPCs whose tools do not list all fields, and no others", async () => {
  const field = Array.from({ length: 2_001 }, (_, at) => stringField(`f${at}`, at + 1));
  const method = ["Wide", "Small"].map((name) => ({ name, inputType: `.a.${name}`, outputType: ".a.Small" }));
  const messageType = [{ name: "Wide", field }, { name: "Small" }];
  const service = [{ name: "S", method }];
  const set = setOfFiles({ name: "a.proto", package: "a", syntax: "proto3", messageType, service });
  const { exitCode, printed } = await check(write("wide.binpb", set), "--mcp", "a.*");
  expect([exitCode, printed.split("\n\n").at(-1)]).toEqual([
    0,
    "2 RPCs would be tools of AI agents.\n" +
      "  a.S.Wide has more fields than a tool's schema lists; models can set the others, too",
  ]);
  const { printed: json } = await check(write("wide.binpb", set), "--mcp", "a.*", "--json");
  expect(JSON.parse(json)).toMatchObject({ tools: { truncated: ["a.S.Wide"] } });
});

test("--help lists every --rest switch", async () => {
  const { exitCode, printed } = await check("--help");
  expect([exitCode, switchNames.filter((name) => !printed.includes(name))]).toEqual([0, []]);
});

test("--json prints services, routes and problems", async () => {
  const { exitCode, printed } = await check(orders, "--json");
  const routes = [expect.stringContaining("orders.v1.OrderService.")];
  expect([exitCode, JSON.parse(printed)]).toEqual([0, { services: ["orders.v1.OrderService"], routes, problems: [] }]);
});
