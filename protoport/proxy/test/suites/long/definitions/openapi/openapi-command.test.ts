import { afterAll, describe, expect, test } from "vitest";
import { parseHttpRules } from "../../../../../../gateway/src/index.ts";
import { createOpenApi } from "../../../../../../gateway/src/openapi/index.ts";
import { createMcp } from "../../../../../../gateway/src/mcp/index.ts";
// oxfmt-ignore
import { descriptorSetOf, file_library_v1_library, file_orders_v1_orders, LibraryService, OrderService,
  restrictedGreenhouse, runProxyCommand } from "@protoport/testing/proxy";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
// oxfmt-ignore
import { CodeGeneratorRequestSchema, CodeGeneratorResponseSchema, FileDescriptorSetSchema
} from "@bufbuild/protobuf/wkt";
import { createTempFolder, projectFolder, runProgram } from "@protoport/testing/process";

const folder = createTempFolder();
const { write } = folder;
afterAll(() => folder[Symbol.dispose]());
const orders = write("orders.binpb", descriptorSetOf(file_orders_v1_orders));
const both = write("both.binpb", descriptorSetOf(file_orders_v1_orders, file_library_v1_library));
const info = { title: OrderService.typeName, version: "1.0.0" };
const server = { url: "https://orders.example/v1" };
const key = { type: "apiKey", name: "x-key", in: "header" } as const;
const rules = { rules: [{ selector: `${OrderService.typeName}.DeleteOrder`, delete: "/gone/{id}" }] };
const base = { info: { title: "Orders", version: "2", contact: { name: "Ada" } }, securitySchemes: { key } };

describe("the openapi command", () => {
  test.each(
    // oxfmt-ignore
    [
      ["without flags", [], { info }],
      ["with --version 3.2", ["--version", "3.2"], { info, openapi: "3.2.0" }],
      ["with --title, --api-version and --server", ["--title", "T", "--api-version", "9", "--server", server.url],
        { info: { title: "T", version: "9" }, servers: [server] }],
      ["with --base", ["--base", write("base.json", JSON.stringify(base))], base],
      ["with --title and a base file in YAML",
        ["--title", "T", "--base", write("base.yaml", "info: {title: A, version: '3'}\nservers: [{url: /a}]\n")],
        { info: { title: "T", version: "3" }, servers: [{ url: "/a" }] }],
      ["with --rules", ["--rules", write("rules.json", JSON.stringify(rules))],
        { info, rest: { rules: parseHttpRules(JSON.stringify(rules)) } }],
      ["with --rest", ["--rest", "lenient"], { info, rest: { service: () => ({ lenient: true }) } }],
      ["with --mcp", ["--mcp", "orders.*"], { info, mcp: createMcp({ tools: ["orders.*"] }) }],
    ] as const,
  )("%s writes createOpenApi's document", async (_name, args, options) => {
    const document = JSON.stringify(createOpenApi([OrderService], options));
    expect(await runProxyCommand("openapi", orders, ...args)).toEqual({ exitCode: 0, printed: document, errors: "" });
  });

  test("omits RPCs and fields that --visibility hides", async () => {
    const set = write("restricted.binpb", descriptorSetOf(restrictedGreenhouse()));
    expect(
      JSON.parse((await runProxyCommand("openapi", set, "--visibility", "INTERNAL")).printed).paths,
    ).toHaveProperty("/sensors/{sensor}/reading");
    const { printed, errors } = await runProxyCommand("openapi", set, "--visibility", "PUBLIC");
    expect(Object.keys(JSON.parse(printed).paths)).toEqual(["/beds/{bed}:water"]);
    expect(printed).not.toContain("note");
    expect(errors).toBe('the visibility label "PUBLIC" has no effect: the definitions use INTERNAL');
  });

  test("ignores rules and omissions of RPCs that --visibility hides", async () => {
    const set = write("restricted.binpb", descriptorSetOf(restrictedGreenhouse()));
    const selector = "greenhouse.v1.GreenhouseService.GetReading";
    const ofHidden = write("hidden.yaml", `rules:\n- { selector: ${selector}, get: "/moved/{sensor}" }\n`);
    const pathsFor = async (...args: readonly string[]): Promise<readonly string[]> =>
      Object.keys(JSON.parse((await runProxyCommand("openapi", set, "--rules", ofHidden, ...args)).printed).paths);
    expect(await pathsFor("--visibility", "PUBLIC", "--omit", selector)).toEqual(["/beds/{bed}:water"]);
    expect(await pathsFor("--visibility", "INTERNAL")).toContain("/moved/{sensor}");
  });

  test("writes the services that --service selects", async () => {
    const document = createOpenApi([LibraryService], { info: { title: LibraryService.typeName, version: "1.0.0" } });
    const { printed } = await runProxyCommand("openapi", both, "--service", LibraryService.typeName);
    expect(printed).toBe(JSON.stringify(document));
  });
});

describe("the openapi command", () => {
  test.each(
    // oxfmt-ignore
    [
      ["an unknown version", ["--version", "3.0"], 2, '--version must be 3.1 or 3.2, got "3.0"'],
      ["the version toString", ["--version", "toString"], 2, "--version must be 3.1 or 3.2"],
      ["a service that does not exist", ["--service", "a.B"], 2, "has no service that matches a.B"],
      ["a base file that does not exist", ["--base", folder.file("none")], 2, "cannot read"],
      ["a misspelled member of the base file", ["--base", write("bad.yaml", "info: {titel: A}\n")], 2,
        'unknown option "info.titel", did you mean "info.title"?'],
      ["a version in the base file that is a number", ["--base", write("number.yaml", "info: {version: 1}\n")], 2,
        "info.version must be a string, got 1"],
      ["an unknown type of a security scheme",
        ["--base", write("scheme.yaml", "securitySchemes: {a: {type: basic}}\n")], 2,
        "securitySchemes.a.type must be one of http, apiKey"],
      ["a folder that does not exist", ["--out", folder.file("none/openapi.json")], 2, "cannot write"],
      ["an invalid HTTP rule",
        ["--rules", write("r.json", JSON.stringify({ rules: [{ ...rules.rules[0], delete: "/{nope}" }] }))], 1, "nope"],
    ],
  )("reports %s as an error", async (_name, args, code, says) => {
    const { exitCode, errors } = await runProxyCommand("openapi", orders, ...args);
    expect([exitCode, errors]).toEqual([code, expect.stringContaining(says)]);
  });

  test("reports a binding that OpenAPI 3.1 cannot describe", async () => {
    const custom = { ...rules.rules[0], delete: undefined, custom: { kind: "PROPFIND", path: "/{id}" } };
    const file = write("custom.json", JSON.stringify({ rules: [custom] }));
    const { exitCode, errors } = await runProxyCommand("openapi", both, "--rules", file);
    expect([exitCode, errors]).toEqual([
      0,
      expect.stringMatching(/^orders\.v1\.OrderService\.DeleteOrder is omitted: /),
    ]);
  });
});

const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
const plugin = "protoc-gen-openapi";

describe("the protoc plugin", () => {
  test("writes the same document when buf runs it", async () => {
    const local = [process.execPath, main, plugin];
    const opt = ["format=yaml", "version=3.2", "title=Orders"];
    const plugins = [{ local, out: folder.file("generated"), strategy: "all", opt }];
    const template = write("buf.gen.json", JSON.stringify({ version: "v2", plugins }));
    const args = ["generate", both, "--template", template, "--path", file_orders_v1_orders.proto.name];
    const { exitCode, stderr } = await runProgram(join(projectFolder, "node_modules/.bin/buf"), args);
    expect([exitCode, stderr]).toEqual([0, ""]);
    const flags = ["--format", "yaml", "--version", "3.2", "--title", "Orders"];
    const { printed } = await runProxyCommand("openapi", orders, ...flags);
    expect(readFileSync(folder.file("generated/openapi.yaml"), "utf8")).toBe(`${printed}\n`);
  });

  test.each([
    { parameter: "version=4", says: "--version must be 3.1 or 3.2" },
    { parameter: "titel=a", says: 'unknown flag "--titel"' },
  ])("reports the invalid option $parameter in its response", async ({ parameter, says }) => {
    const { file } = fromBinary(FileDescriptorSetSchema, readFileSync(orders));
    const fileToGenerate = [file_orders_v1_orders.proto.name];
    const request = create(CodeGeneratorRequestSchema, { fileToGenerate, parameter, protoFile: file });
    const input = write("request.bin", toBinary(CodeGeneratorRequestSchema, request));
    const output = folder.file("response.bin");
    const command = `exec "${process.execPath}" "${main}" ${plugin} < "${input}" > "${output}"`;
    expect((await runProgram("sh", ["-c", command])).exitCode).toBe(0);
    const response = fromBinary(CodeGeneratorResponseSchema, readFileSync(output));
    expect(response).toMatchObject({ error: expect.stringContaining(says), file: [] });
  });
});
