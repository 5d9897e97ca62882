import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  DescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { afterAll, describe, expect, test } from "vitest";
import { checkCommand } from "../../../src/gateway/check/index.ts";
import { adviceFor } from "../../../src/gateway/check/advice.ts";
import { differences } from "../../../src/gateway/check/differences.ts";
import { switchNames, toRestOptions } from "../../../src/gateway/check/rest-switches.ts";
import { createGateway, parseHttpRules } from "../../../src/gateway/index.ts";
import { file_files_v1_files } from "../../gen/files/v1/files_pb.ts";
import { file_kitchensink_v1_kitchen_sink, KitchenSink } from "../../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { file_kitchensink_v1_legacy } from "../../gen/kitchensink/v1/legacy_pb.ts";
import { file_kitchensink_v1_shelves } from "../../gen/kitchensink/v1/shelves_pb.ts";
import { file_plantstore_v1_plant_service } from "../../gen/plantstore/v1/plant_service_pb.ts";
import { file_streams_v1_stream_service } from "../../gen/streams/v1/stream_service_pb.ts";
import { descriptorSetOf } from "../../support/gateway/descriptor-set.ts";
import { projectFolder, runProgram } from "../../support/process/child-program.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";

// npx @plantstore/gateway check

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

/** Writes a file, and returns its path. */
function write(name: string, content: string | Uint8Array): string {
  writeFileSync(folder.file(name), content);
  return folder.file(name);
}

const plants = write("plants.binpb", descriptorSetOf(file_plantstore_v1_plant_service));
const everything = write(
  "everything.binpb",
  descriptorSetOf(
    file_files_v1_files,
    file_kitchensink_v1_kitchen_sink,
    file_kitchensink_v1_legacy,
    file_kitchensink_v1_shelves,
    file_streams_v1_stream_service,
  ),
);

const unbound = "kitchensink.v1.KitchenSink.Unbound";
const streams = "streams.v1.StreamService";

/** Returns every text that the room of REST gives a `RuleProblem`, with x for what is put in. */
function problemTexts(): readonly string[] {
  const room = join(projectFolder, "src/gateway/rest");
  const texts = globSync(join(room, "*.ts")).flatMap((file) => [
    ...readFileSync(file, "utf8").matchAll(/new RuleProblem\(\s*(["'`])(.*?)\1/g),
  ]);
  expect(texts.length).toBeGreaterThan(15);
  return texts.map(([, , text = ""]) => text.replaceAll(/\$\{[^}]*\}/g, "x"));
}

function rule(path: string, more: object = {}, selector = unbound): object {
  return { selector, get: path, ...more };
}

/** Writes rules from outside, and returns the words that name them. */
function withRules(...rules: readonly object[]): readonly string[] {
  return ["--rules", write("rules.json", JSON.stringify({ rules }))];
}

async function check(...words: readonly string[]): Promise<{ exitCode: number; printed: string; complaint: string }> {
  const out: string[] = [];
  const errors: string[] = [];
  const exitCode = await checkCommand(["check", ...words], {
    print: (text) => void out.push(text),
    complain: (text) => void errors.push(text),
  });
  return { exitCode, printed: out.join("\n"), complaint: errors.join("\n") };
}

test("a definition that starts is counted, and what differs lists its bindings", async () => {
  expect(await check(plants, "--from", "grpc-gateway")).toEqual({
    exitCode: 0,
    complaint: "",
    printed: `${plants}: 1 service, 1 RPC

It would start: 1 service with 1 binding of REST.

What is otherwise than with grpc-gateway:

  An integer in a path has one spelling: 007 and +7 are refused.
    Write integers as 0 or -?[1-9][0-9]*. No option changes this: a resource has one URL.
    - plantstore.v1.PlantService.DeletePlant: DELETE /plants/{id}

  A query or a body that repeats a field of the path is refused.
    lenient of rest.service ignores it; sameValueAsPath accepts the same value in a body.
    - plantstore.v1.PlantService.DeletePlant: DELETE /plants/{id}

  A body is refused where the rule has none.
    ignoreBodies of rest.service ignores it. It never sets a field.
    - plantstore.v1.PlantService.DeletePlant: DELETE /plants/{id}

  An unknown query parameter is refused.
    lenient of rest.service ignores all of them; ignoredQueryParameters those that you name, such as utm_*.
    - plantstore.v1.PlantService.DeletePlant: DELETE /plants/{id}`,
  });
});

test("the report of a definition with everything reads as it was read", async () => {
  const { printed } = await check(everything, ...withRules(rule("/a/{nope}"), rule("/b//c")));
  await expect(printed.replaceAll(everything, "everything.binpb")).toMatchFileSnapshot("everything.txt");
});

test("is a program", async () => {
  const file = join(projectFolder, "src/gateway/command/main.ts");
  expect(await runProgram(process.execPath, [file, "check", plants, "--from", "envoy"])).toMatchObject({
    exitCode: 0,
    stdout: `${(await check(plants, "--from", "envoy")).printed}\n`,
  });
  for (const words of [[], ["proxy"]]) {
    expect(await runProgram(process.execPath, [file, ...words])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("Usage: npx"),
    });
  }
});

/** Returns the lines below one of the differences. */
function bindingsOf({ printed }: { readonly printed: string }): readonly string[] {
  const section = printed.split("\n\n").find((one) => one.startsWith("  A JSON body of another"));
  return section?.split("\n").slice(2) ?? [];
}

test("five bindings are listed, and all if they are asked for", async () => {
  const some = await check(everything, "--from", "envoy");
  expect(some.printed).toContain("\n    - and 6 more, which --all lists\n");
  expect(some.printed).toContain("\n    - all bindings");
  const all = await check(everything, "--from", "envoy", "--all");
  expect(bindingsOf(some).slice(0, 5)).toEqual(bindingsOf(all).slice(0, 5));
  expect(bindingsOf(some)).toHaveLength(6);
  expect(all.printed).not.toContain("more, which");
  expect(all.printed).not.toContain("all bindings");
  expect(all.printed).toContain("RPCs without a rule: JSON too");
});

const segments = "kitchensink.v1.KitchenSink.Segments: GET /v1/{f_string=shelves/*/books/*}";
const getInt = "kitchensink.v1.KitchenSink.Types: GET /v1/int64/{f_int64}";
const create1 = "kitchensink.v1.KitchenSink.Create: POST /v1/sinks";
const putFile = "files.v1.FileService.PutFile: PUT /files/{name}";
const echo = `${streams}.Echo: POST /v1/echo`;
const download = "files.v1.FileService.Download: GET /downloads/{name}";
const nested = "kitchensink.v1.KitchenSink.Update: PATCH /v1/nested/{nested.text}";
const response = "kitchensink.v1.KitchenSink.ResponseNested: GET /v1/response/tags";
const any = "kitchensink.v1.KitchenSink.Any: * /v1/any/{f_string}";
const bytes = "kitchensink.v1.KitchenSink.Types: GET /v1/bytes/{f_bytes}";
const matchRest = "kitchensink.v1.KitchenSink.MatchRest: GET /v1/match/{f_string=**}";

describe("what differs", () => {
  const rows = [
    { begins: "%2F in a path", has: segments, not: getInt, by: "fullyDecodeReservedExpansion" },
    { begins: "Bytes in a path", has: bytes, not: getInt },
    { begins: "An integer in a path", has: getInt, not: bytes },
    { begins: "The custom kind *", has: any, not: create1 },
    { begins: "response_body is any", has: response, not: getInt },
    { begins: "A stream of the client", has: echo, not: create1, by: "jsonClientStreams" },
    { begins: "A server stream is lines of messages", has: echo, not: download, by: "streamInResults" },
    { begins: "A server stream is lines of JSON", has: echo, not: download },
    { begins: "The bytes of a streamed HttpBody", has: download, not: echo },
    { begins: "A PATCH without", has: nested, not: create1, by: "updateMaskFromBody" },
    { begins: "labels[color]=red", has: getInt, not: create1, by: "mapsInQuery" },
    { begins: "A query or a body that repeats", has: getInt, not: create1, by: "lenient" },
    { begins: "A body is refused", has: getInt, not: create1, by: "ignoreBodies" },
    { begins: "An unknown field or enum", has: create1, not: putFile, by: "lenient" },
    { begins: "A JSON body of another", has: create1, not: putFile },
    { begins: "Fields that are zero", has: getInt, not: download },
    { begins: "+ in a query", has: getInt, not: create1 },
    { begins: "A path with a slash", has: getInt, not: matchRest },
    { begins: "An unknown query", has: getInt, not: undefined, by: "lenient" },
    { begins: "RPCs with a rule", has: getInt, not: undefined },
  ];

  test("has a row for each", () => {
    expect(rows.map(({ begins }) => differences.find(({ says }) => says.startsWith(begins)))).toEqual(differences);
  });

  test.each(rows)("$begins…: lists $has", async ({ begins, has, not, by }) => {
    const rules = withRules({ selector: `${streams}.Echo`, post: "/v1/echo", body: "*" });
    const sectionOf = async (...words: readonly string[]): Promise<string | undefined> => {
      const { printed } = await check(everything, "--all", ...rules, ...words);
      return printed.split("\n\n").find((section) => section.startsWith(`  ${begins}`));
    };
    const listed = (await sectionOf())?.split("\n") ?? [];
    expect(listed).toContain(`    - ${has}`);
    expect(listed).not.toContain(`    - ${not}`);
    if (by !== undefined) expect(await sectionOf("--rest", by)).toBeUndefined();
  });
});

test("an option that is named is on, for every service", () => {
  const { service, ...others } = toRestOptions(new Set(["lenient", "fullyDecodeReservedExpansion"]));
  expect([service?.(KitchenSink), others]).toEqual([{ lenient: true }, { fullyDecodeReservedExpansion: true }]);
});

describe("what is refused", () => {
  const rules = [
    { selector: unbound, get: "/a/{nope}" },
    { selector: "kitchensink.v1.KitchenSink.Root", get: "/b/{ids}" },
    { selector: "kitchensink.v1.KitchenSink.Close", get: "/b/{" },
  ];

  test("is all that createGateway says, with what to do", async () => {
    const { exitCode, printed } = await check(everything, ...withRules(...rules), "--service", KitchenSink.typeName);
    let thrown = "";
    try {
      const outside = parseHttpRules(JSON.stringify({ rules }));
      createGateway({ routes: (router) => router.service(KitchenSink, {}), rest: { rules: outside } });
    } catch (error) {
      thrown = String(error);
    }
    const [, ...problems] = thrown.split("\n");
    expect(problems).toHaveLength(3);
    const advised = [...printed.matchAll(/^ {2}(kitchensink\.v1\.KitchenSink\.(?:Unbound|Root|Close): .*)\n {4}\S/gm)];
    expect(advised.map(([, problem]) => problem)).toEqual(problems);
    expect(printed).toContain("\nIt would not start, for 3 reasons:\n");
    expect(printed).not.toContain("without a rule");
    expect(exitCode).toBe(1);
  });

  test.each([
    { problem: "is the same as", rules: [rule("/a", { additionalBindings: [{ get: "/a" }] })], advice: "Give one of" },
    {
      problem: "is never reached",
      rules: [rule("/{f_string=**}/end", { additionalBindings: [{ get: "/{f_string}/**" }, { get: "/end" }] })],
      advice: "Give it a path that",
    },
    { problem: "is no field of", rules: [rule("/a", { response_body: "nope" })], advice: "Name a field" },
    { problem: "is repeated, a map", rules: [rule("/{labels}")], advice: "Let the path have a scalar" },
    { problem: "can never be a value", rules: [rule("/{f_int64=a/*}")], advice: "Write literals outside" },
    { problem: "that the path binds", rules: [rule("/{f_string}", { body: "f_string" })], advice: "Bind a field" },
    {
      problem: "additional_bindings are nested",
      rules: [rule("/a", { additionalBindings: [{ get: "/b", additionalBindings: [{ get: "/c" }] }] })],
      advice: "Put all",
    },
    { problem: "has no method and path", rules: [{ selector: unbound }], advice: "Give it one of get" },
    {
      problem: "is no HTTP method",
      rules: [{ selector: unbound, custom: { kind: "A/B", path: "/a" } }],
      advice: "Take a method",
    },
    {
      problem: "that no parser of",
      rules: [{ selector: unbound, custom: { kind: "ARCHIVE", path: "/a" } }],
      advice: "Take a method",
    },
    { problem: "the path of an RPC", rules: [rule(`/${KitchenSink.typeName}/Unbound`)], advice: "Give it another" },
    { problem: "has no body for them", rules: [rule("/a", {}, `${streams}.Echo`)], advice: 'Give it body: "*"' },
    {
      problem: "whose first message alone",
      rules: [rule("/a/{name}", { body: "*" }, "kitchensink.v1.LegacySink.KeepAll")],
      advice: 'Let body: "*"',
    },
    { problem: "at character", rules: [rule("/a//b")], advice: "Write it by the grammar" },
    { problem: "is no RPC", rules: [rule("/a", {}, "kitchensink.v1.KitchenSink.Typo")], advice: "Name an RPC as" },
  ])("$problem has advice", async ({ problem, rules: given, advice }) => {
    const { exitCode, printed } = await check(everything, ...withRules(...given));
    expect(exitCode).toBe(1);
    const lines = printed.split("\n");
    const at = lines.findIndex((line) => line.includes(problem));
    expect(lines[at + 1]).toContain(`    ${advice}`);
  });

  test.each(problemTexts())("has advice if it is: %s", (text) => {
    expect(adviceFor(`shop.v1.Shop.Get: ${text}`)).toBeDefined();
  });

  test("is not refused where an option takes it", async () => {
    const given = withRules(rules[0] ?? {});
    expect((await check(everything, ...given)).exitCode).toBe(1);
    expect((await check(everything, ...given, "--omit", unbound)).exitCode).toBe(0);
    expect((await check(everything, ...given, "--service", "files.*")).exitCode).toBe(0);
  });
});

test("rules come from a service config too, and those of other services are ignored", async () => {
  const http = {
    rules: [
      { selector: unbound, get: "/x" },
      { selector: "google.longrunning.Operations.GetOperation", get: "/y" },
    ],
  };
  const config = write("service.json", JSON.stringify({ type: "google.api.Service", configVersion: 3, http }));
  const yaml = write("service.yaml", `http:\n  rules:\n  - selector: ${unbound}\n    get: /x # for now\n`);
  for (const file of [config, yaml]) {
    const { exitCode, printed } = await check(everything, "--rules", file, "--all");
    expect(exitCode).toBe(0);
    expect(printed).toContain(`- ${unbound}: GET /x\n`);
  }
});

test("rules that say something twice are refused, as where they are served", async () => {
  const rules = write("twice.json", `{"rules": [{"selector": "${unbound}", "get": "/a", "get": "/b"}]}`);
  const { exitCode, complaint } = await check(everything, "--rules", rules);
  expect([exitCode, complaint]).toEqual([2, expect.stringContaining("has no rules: ")]);
});

describe("what cannot be read", () => {
  const set = descriptorSetOf(file_plantstore_v1_plant_service);
  const alone = create(FileDescriptorSetSchema, { file: [file_plantstore_v1_plant_service.proto] });
  const options = create(MethodOptionsSchema);
  // google.api.http, with a length and bytes that are no HttpRule.
  options.$unknown = [{ no: 72295728, wireType: 2, data: new Uint8Array([2, 0xff, 0xff]) }];
  const method = { name: "R", inputType: ".a.M", outputType: ".a.M", options };
  const setWith = (messages: readonly string[]): Uint8Array => {
    const messageType = messages.map((name) => create(DescriptorProtoSchema, { name }));
    const file = { name: "a.proto", package: "a", messageType, service: [{ name: "S", method: [method] }] };
    const proto = create(FileDescriptorProtoSchema, file);
    return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [proto] }));
  };

  test.each([
    { name: "an empty file", content: "", says: "is empty. Make it by `buf build" },
    { name: "a .proto file", content: 'syntax = "proto3";', says: "it is text. Make it" },
    { name: "a set as JSON", content: '{"file": []}', says: "it is text" },
    { name: "text that begins with line breaks", content: "\n\n\nhello, world\n", says: "it is text" },
    {
      name: "another binary file",
      content: new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 0]),
      says: "begins with something",
    },
    { name: "a compressed set", content: gzipSync(set), says: "it is compressed by gzip" },
    { name: "half a set", content: set.subarray(0, set.length / 2), says: "it is cut short" },
    {
      name: "a set without services",
      content: descriptorSetOf(file_kitchensink_v1_legacy.dependencies[0] ?? file_files_v1_files),
      says: "has no service in it",
    },
    {
      name: "a file whose types are missing",
      content: setWith([]),
      says: "a.S is left out: the type a.M is missing. ",
    },
    { name: "an annotation that is none", content: setWith(["M"]), says: "the definition cannot be checked: " },
  ])("$name", async ({ content, says }) => {
    const { exitCode, printed, complaint } = await check(write("given.binpb", content));
    expect({ exitCode, printed }).toEqual({ exitCode: 2, printed: "" });
    expect(complaint).toContain(says);
    expect(complaint).not.toMatch(/\n {4}at /);
  });

  test("a set without the imports that everybody has is checked as it is", async () => {
    const { exitCode, printed, complaint } = await check(
      write("given.binpb", toBinary(FileDescriptorSetSchema, alone)),
    );
    expect([exitCode, complaint]).toEqual([0, ""]);
    expect(printed).toContain("It would start: 1 service with 1 binding of REST.");
  });

  test.each([
    { name: "a folder", words: ["/"], says: "/ cannot be read: EISDIR" },
    { name: "no such file", words: ["nowhere.binpb"], says: "nowhere.binpb cannot be read: ENOENT" },
    { name: "no file", words: [], says: "Usage: " },
    { name: "two files", words: [plants, plants], says: "Usage: " },
    { name: "an unknown flag", words: [plants, "--strict"], says: "Unknown option '--strict'" },
    {
      name: "an unknown option of rest",
      words: [plants, "--rest", "loose"],
      says: "--rest knows no loose, only lenient",
    },
    { name: "an unknown peer", words: [plants, "--from", "nginx"], says: "--from knows no nginx, only connect-node" },
    { name: "a service that is not there", words: [plants, "--service", "a.B"], says: "has no service of such a name" },
    {
      name: "rules of more than 4 MiB",
      words: [plants, "--rules", write("large.yaml", " ".repeat(4 * 1024 * 1024 + 1))],
      says: "large.yaml has more than 4194304 bytes",
    },
    {
      name: "rules with an alias",
      words: [plants, "--rules", write("a.yaml", "http:\n  rules: *a\n")],
      says: "a.yaml has no rules: line 2, column 10: *: a text",
    },
  ])("$name", async ({ words, says }) => {
    const { exitCode, printed, complaint } = await check(...words);
    expect({ exitCode, printed }).toEqual({ exitCode: 2, printed: "" });
    expect(complaint).toContain(says);
  });

  test("a file of more than 200 MiB, which is not read to its end", async () => {
    expect((await check("/dev/zero")).complaint).toBe("/dev/zero is larger than 209715200 bytes");
  });

  test("another command", async () => {
    const complaints: string[] = [];
    const output = { print: () => {}, complain: (text: string) => void complaints.push(text) };
    expect(await checkCommand(["serve", plants], output)).toBe(2);
    expect(complaints[0]).toMatch(/^serve is no command: there are check and proxy\n\nUsage: /);
  });
});

test("the help names every option of rest that is a switch, in lines of three", async () => {
  const printed: string[] = [];
  const output = { print: (text: string) => void printed.push(text), complain: () => {} };
  expect(await checkCommand(["--help"], output)).toBe(0);
  const [, listed = ""] = /may be repeated:\n +([^-]*)\n {2}--omit/.exec(printed.join("\n")) ?? [];
  expect(listed.split(/,\s+/)).toEqual([...switchNames]);
  expect(listed.split("\n").map((line) => line.trim().split(" ").length)).toEqual([3, 3, 3, 3]);
});
