import { writeFileSync } from "node:fs";
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
import { checkCommand } from "../../src/check/index.ts";
import { switchNames, toRestOptions } from "../../src/check/rest-switches.ts";
import { createGateway, parseHttpRules } from "../../../gateway/src/index.ts";
import { file_files_v1_files } from "../../../testing/src/gen/files/v1/files_pb.ts";
import {
  file_kitchensink_v1_kitchen_sink,
  KitchenSink,
} from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { file_kitchensink_v1_legacy } from "../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { file_kitchensink_v1_shelves } from "../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { file_orders_v1_orders } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { file_streams_v1_stream_service } from "../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { projectFolder, runProgram } from "../../../testing/src/process/child-program.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

// npx @plantstore/proxy check

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

/** Writes a file, and returns its path. */
function write(name: string, content: string | Uint8Array): string {
  writeFileSync(folder.file(name), content);
  return folder.file(name);
}

const orders = write("orders.binpb", descriptorSetOf(file_orders_v1_orders));
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

/** Writes rules from outside, and returns the words that name them. */
function withRules(...rules: readonly object[]): readonly string[] {
  return ["--rules", write("rules.json", JSON.stringify({ rules }))];
}

async function check(...words: readonly string[]): Promise<{ exitCode: number; printed: string; complaint: string }> {
  const out: string[] = [];
  const errors: string[] = [];
  const exitCode = await checkCommand([...words], {
    print: (text) => void out.push(text),
    complain: (text) => void errors.push(text),
  });
  return { exitCode, printed: out.join("\n"), complaint: errors.join("\n") };
}

test("a definition that starts is counted", async () => {
  expect(await check(orders)).toEqual({
    exitCode: 0,
    complaint: "",
    printed: `${orders}: 1 service, 1 RPC\n\nIt would start: 1 service with 1 binding of REST.`,
  });
});

test("RPCs without a rule are counted", async () => {
  const { printed } = await check(everything, "--service", KitchenSink.typeName);
  expect(printed).toMatch(
    /\nIt would start: 1 service with \d+ bindings of REST\.\n1 RPC without a rule: JSON too, by POST/,
  );
});

test("is a program", async () => {
  const file = join(projectFolder, "packages/proxy/src/command/main.ts");
  expect(await runProgram(process.execPath, [file, "check", orders])).toMatchObject({
    exitCode: 0,
    stdout: `${(await check(orders)).printed}\n`,
  });
  for (const words of [[], ["check"], ["chekc"]]) {
    expect(await runProgram(process.execPath, [file, ...words])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("Usage: npx"),
    });
  }
});

test("an option that is named is on, for every service", () => {
  const { service, ...others } = toRestOptions(new Set(["lenient", "fullyDecodeReservedExpansion"]));
  const ofAll = { profile: "strict", fullyDecodeReservedExpansion: true };
  expect([service?.(KitchenSink), others]).toEqual([{ lenient: true }, ofAll]);
  expect(toRestOptions(new Set(), "google")).toMatchObject({ profile: "google" });
});

describe("what is refused", () => {
  const rules = [
    { selector: unbound, get: "/a/{nope}" },
    { selector: "kitchensink.v1.KitchenSink.Root", get: "/b/{ids}" },
    { selector: "kitchensink.v1.KitchenSink.Close", get: "/b/{" },
  ];

  test("is all that createGateway throws, a line each", async () => {
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
    const reasons = ["It would not start, for 3 reasons:", "", ...problems.map((problem) => `  ${problem}`), ""];
    expect(printed).toContain(`\n${reasons.join("\n")}\nrest.rules replaces a rule that you cannot change`);
    expect(printed).not.toContain("without a rule");
    expect(exitCode).toBe(1);
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
    expect(await check(everything, "--service", KitchenSink.typeName, "--rules", file)).toMatchObject({
      exitCode: 0,
      printed: expect.not.stringContaining("without a rule"),
    });
  }
});

test("rules that say something twice are refused, as where they are served", async () => {
  const rules = write("twice.json", `{"rules": [{"selector": "${unbound}", "get": "/a", "get": "/b"}]}`);
  const { exitCode, complaint } = await check(everything, "--rules", rules);
  expect([exitCode, complaint]).toEqual([2, expect.stringContaining("has no rules: ")]);
});

describe("what cannot be read", () => {
  const set = descriptorSetOf(file_orders_v1_orders);
  const alone = create(FileDescriptorSetSchema, { file: [file_orders_v1_orders.proto] });
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
    { name: "two files", words: [orders, orders], says: "Usage: " },
    { name: "an unknown flag", words: [orders, "--strict"], says: "Unknown option '--strict'" },
    {
      name: "an unknown option of rest",
      words: [orders, "--rest-profile", "gogle"],
      says: "--rest-profile must be one of strict, google, grpc-gateway, envoy, got gogle",
    },
    {
      words: [orders, "--rest", "loose"],
      says: "--rest knows no loose, only lenient",
    },
    { name: "a service that is not there", words: [orders, "--service", "a.B"], says: "has no service of such a name" },
    {
      name: "rules of more than 4 MiB",
      words: [orders, "--rules", write("large.yaml", " ".repeat(4 * 1024 * 1024 + 1))],
      says: "large.yaml has more than 4194304 bytes",
    },
    {
      name: "rules with an alias",
      words: [orders, "--rules", write("a.yaml", "http:\n  rules: *a\n")],
      says: "a.yaml has no rules: line 2, column 10: *a is an alias",
    },
  ])("$name", async ({ words, says }) => {
    const { exitCode, printed, complaint } = await check(...words);
    expect({ exitCode, printed }).toEqual({ exitCode: 2, printed: "" });
    expect(complaint).toContain(says);
  });

  test("a file of more than 200 MiB, which is not read to its end", async () => {
    expect((await check("/dev/zero")).complaint).toBe("/dev/zero is larger than 209715200 bytes");
  });

  test("two files", async () => {
    expect((await check(orders, orders)).complaint).toMatch(/^Usage: npx @plantstore\/proxy check SET /);
  });
});

test("the help names every option of rest that is a switch, in lines of three", async () => {
  const printed: string[] = [];
  const output = { print: (text: string) => void printed.push(text), complain: () => {} };
  expect(await checkCommand(["--help"], output)).toBe(0);
  const [, listed = ""] = /may be repeated:\n +([^-]*)\n {2}--rest-profile/.exec(printed.join("\n")) ?? [];
  expect(listed.split(/,\s+/)).toEqual([...switchNames]);
  expect(listed.split("\n").map((line) => line.trim().split(" ").length)).toEqual([3, 3, 3, 2]);
});
