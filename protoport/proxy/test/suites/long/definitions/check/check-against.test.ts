import { join, delimiter, dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { descriptorSetOf, file_files_v1_files, file_kitchensink_v1_kitchen_sink, runProxyCommand
} from "@protoport/testing/proxy";
import { createTempFolder, type ProgramResult, projectFolder, runProgram } from "@protoport/testing/process";
import { buildCases } from "../compare/build-cases.ts";
import { chmodSync, cpSync, mkdirSync, readdirSync } from "node:fs";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
const search = 'rpc Search(Res) returns (Res) { option (google.api.http) = { get: "/items/search" }; }';
const visibleTo = (labels: string): string => `option (google.api.method_visibility).restriction = "${labels}";`;

/** Returns the options of a field or an enum value that only some callers see. */
const fieldFor = (labels: string, kind = "field"): string =>
  `[(google.api.${kind}_visibility).restriction = "${labels}"]`;

let old: string;
let now: string;
beforeAll(async () => {
  // oxfmt-ignore
  const built = await buildCases([
    { name: "a route and a rule change, and another route is shadowed", reports: [],
      old: { http: 'post: "/call" body: "*" additional_bindings { get: "/items/{id}" }' },
      now: { http: 'post: "/calls" body: "*" additional_bindings { get: "/items/{id}" }',
        req: "string id = 1 [(buf.validate.field).string.max_len = 1];", methods: search } },
    { name: "a route is shadowed", reports: [], old: { http: 'get: "/items/{id}"' }, now: { methods: search } },
    { name: "an RPC keeps one of its labels", reports: [], old: { options: visibleTo("INTERNAL, PARTNER") },
      now: { options: visibleTo("PARTNER") } },
    { name: "a rule is not valid", reports: [], old: {}, now: { http: 'get: "/{nope}"' } },
    { name: "an RPC, a field and an enum value become internal, and others are removed", reports: [],
      old: { methods: "rpc Ask(Req) returns (Res); rpc Removed(Req) returns (Res);",
        req: "string id = 1; string name = 2; Color color = 3;", types: "enum Color { NONE = 0; RED = 1; }" },
      now: { methods: `rpc Ask(Req) returns (Res) { ${visibleTo("INTERNAL")} }`,
        req: `string id = 1 ${fieldFor("INTERNAL")}; string name = 2 ${fieldFor("PARTNER")}; Color color = 3;`,
        types: `enum Color { NONE = 0; RED = 1 ${fieldFor("INTERNAL", "value")}; }` } },
  ]);
  old = folder.write("old.binpb", built.old);
  now = folder.write("now.binpb", built.now);
}, 60_000);

async function check(...args: readonly string[]): Promise<ProgramResult> {
  const { exitCode, printed, errors } = await runProxyCommand("check", ...args);
  return { exitCode, stdout: printed, stderr: errors };
}

const inFirst = ["--service", "c0.*"];

describe("check --against", () => {
  test("reports each change with its location and its effect on clients", async () =>
    expect(await check(now, "--against", old, ...inFirst)).toEqual({
      exitCode: 1,
      stderr: "",
      stdout: `${now}: 1 service, 2 RPCs

The gateway would start: 1 service with 3 REST bindings.

2 changes break clients, 1 may; 0 accepted.

c0.proto:13: error: route-removed c0.S.Call POST /call
  changed: the RPC has POST /calls and GET /items/{id}
  before:  POST /call called c0.S.Call
  now:     404

c0.proto:20: error: rules-narrowed c0.Req.id
  changed: buf.validate is narrower: string.maxLen
  before:  GET /items/{id} with id outside of the new rules
  now:     400, if the server validates requests

c0.proto:17: warning: route-shadowed c0.S.Call GET /items/{id}
  changed: c0.S.Search: GET /items/search is more specific than GET /items/{id}
  before:  GET /items/search called c0.S.Call
  now:     c0.S.Search is called`,
    }));

  test("with --github, prints GitHub Actions annotations with paths below --source-root", async () => {
    const args = ["--against", old, "--github", "--source-root", "some proto:s/"];
    expect(await check(now, ...args, ...inFirst)).toEqual({
      exitCode: 1,
      stderr: "",
      stdout: [
        "::error file=some proto%3As/c0.proto,line=13,title=route-removed::c0.S.Call POST /call: the RPC has POST /calls and GET /items/{id}%0A" +
          "Before: POST /call called c0.S.Call%0ANow: 404",
        "::error file=some proto%3As/c0.proto,line=20,title=rules-narrowed::c0.Req.id: buf.validate is narrower: " +
          "string.maxLen%0ABefore: GET /items/{id} with id outside of the new rules%0A" +
          "Now: 400, if the server validates requests",
        "::warning file=some proto%3As/c0.proto,line=17,title=route-shadowed::c0.S.Call GET /items/{id}: " +
          "c0.S.Search: GET /items/search is more specific than GET /items/{id}%0A" +
          "Before: GET /items/search called c0.S.Call%0ANow: c0.S.Search is called",
        "2 changes break clients, 1 may; 0 accepted.",
      ].join("\n"),
    });
  });

  test("with --github, prints the reason why the gateway would not start", async () => {
    const { exitCode, stdout } = await check(now, "--against", old, "--github", "--service", "c3.*");
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringMatching(
        /^::error title=The gateway would not start::c3\.S\.Call.*nope.*\n::error .*title=route-removed::c3\.S\.Call POST \/call/,
      ),
    ]);
  });

  test("with --json, prints changes and accepted changes as JSON", async () => {
    const accept = folder.write("one.txt", "route-removed c0.S.Call POST /call");
    const { stdout } = await check(now, "--against", old, "--accept", accept, "--json", ...inFirst);
    // oxfmt-ignore
    expect(JSON.parse(stdout)).toMatchObject({ services: ["c0.S"],
      problems: [],
      changes: [{ rule: "rules-narrowed", severity: "error", subject: "c0.Req.id",
          change: "buf.validate is narrower: string.maxLen", before: "GET /items/{id} with id outside of the new rules",
          now: "400, if the server validates requests", file: "c0.proto", line: 20 },
        { rule: "route-shadowed", severity: "warning" }],
      accepted: [{ rule: "route-removed", subject: "c0.S.Call POST /call" }],
    });
  });

  test("accepts the changes listed in a file, and reports unused lines", async () => {
    const rules = "route-removed c0.S.Call POST /call\r\n\n  rules-narrowed c0.Req.id # typo\nrules-narrowed c0.Req.x";
    const accept = folder.write("all.txt", `# Version 2\n${rules}\n`);
    const { exitCode, stdout, stderr } = await check(now, "--against", old, "--accept", accept, ...inFirst);
    expect([exitCode, stderr]).toEqual([0, '--accept: "rules-narrowed c0.Req.x" accepts no change']);
    expect(stdout).toContain("\n0 changes break clients, 1 may; 2 accepted.\n\nc0.proto:17: warning: ");
  });

  test("accepts an empty file of accepted changes", async () => {
    const result = await check(now, "--against", now, "--accept", folder.write("empty.txt", ""), ...inFirst);
    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  });

  test.for(["strict", "grpc-gateway", "google"])(
    "with the profile %s, reports no change for an unchanged definition",
    async (profile) => {
      const set = folder.write("same.binpb", descriptorSetOf(file_kitchensink_v1_kitchen_sink, file_files_v1_files));
      const { exitCode, stdout } = await check(set, "--against", set, "--rest-profile", profile);
      const unchanged = expect.stringMatching(/\n\n0 changes break clients, 0 may; 0 accepted\.$/);
      expect([exitCode, stdout]).toEqual([0, unchanged]);
    },
  );

  test("exits with 0 if all changes are warnings", async () => {
    const { exitCode, stdout } = await check(now, "--against", old, "--service", "c1.*");
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining("\n0 changes break clients, 1 may; 0 accepted.\n")]);
  });

  test("with --visibility, reports an RPC that lost the given label", async () => {
    const args = ["--against", old, "--service", "c2.*"];
    const reported = "error: visibility-narrowed c2.S.Call\n";
    expect(await check(now, ...args)).toMatchObject({ exitCode: 1, stdout: expect.stringContaining(reported) });
    expect(await check(now, ...args, "--visibility", "PARTNER")).toMatchObject({ exitCode: 0 });
    const hidden = expect.stringContaining("error: element-hidden c2.S.Call\n");
    expect(await check(now, ...args, "--visibility", "INTERNAL")).toMatchObject({ exitCode: 1, stdout: hidden });
  });

  test("reports missing elements only with --visibility", async () => {
    const rulesIn = async (...flags: readonly string[]): Promise<readonly string[]> => {
      const { stdout } = await check(now, "--against", old, "--service", "c4.*", "--json", ...flags);
      const { changes }: { changes: readonly { rule: string; subject: string }[] } = JSON.parse(stdout);
      return changes.map(({ rule, subject }) => `${rule} ${subject}`).toSorted();
    };
    const visible = ["c4.Color.RED", "c4.Req.id", "c4.S.Ask"];
    const narrowed = [...visible, "c4.Req.name"].toSorted().map((subject) => `visibility-narrowed ${subject}`);
    expect(await rulesIn()).toEqual(narrowed);
    const hidden = [...visible, "c4.S.Removed"].map((subject) => `element-hidden ${subject}`);
    expect(await rulesIn("--visibility", "PARTNER")).toEqual(hidden);
  });

  test.for(
    // oxfmt-ignore
    [
      { definition: "warns that buf.validate rules are not compared", set: () => now, service: "c0.*",
        stderr: "buf.validate rules are not compared: install the package @bufbuild/protovalidate to compare them\n" },
      { definition: "prints no warning for a definition without buf.validate",
        set: () => folder.write("plain.binpb", descriptorSetOf(file_files_v1_files)), service: "files.v1.*",
        stderr: "" },
    ],
  )("without protovalidate, $definition", async ({ set, service, stderr }) => {
    const hook = `import { registerHooks } from "node:module";
      registerHooks({ resolve(name, context, next) {
        if (name.startsWith("@bufbuild/protovalidate")) throw new Error("not installed");
        return next(name, context);
      } });`;
    const args = ["--import", `data:text/javascript,${encodeURIComponent(hook)}`, main, "check", set()];
    args.push("--against", set(), "--service", service);
    expect(await runProgram(process.execPath, args)).toMatchObject({ exitCode: 0, stderr });
  });

  test("applies --rules and --omit to both versions", async () => {
    const rules = folder.write("rules.json", JSON.stringify({ rules: [{ selector: "c3.S.Call", get: "/call" }] }));
    const { exitCode, stdout } = await check(now, "--against", old, "--rules", rules, "--service", "c3.*");
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining("\n0 changes break clients, 0 may; 0 accepted.")]);
    const omitted = await check(now, "--against", old, "--omit", "c3.S.Call", "--service", "c3.*");
    const unchanged = { exitCode: 0, stdout: expect.stringContaining("0 changes break clients, 0 may") };
    expect(omitted).toMatchObject(unchanged);
  });
});

describe("check --against with invalid input", () => {
  const files = folder.write("files.binpb", descriptorSetOf(file_files_v1_files));
  const text = folder.write("text.binpb", 'syntax = "proto3";');
  const missing = folder.file("missing.txt");

  test.for<[name: string, args: () => readonly string[], problem: string]>(
    // oxfmt-ignore
    [
      ["a descriptor set of another package", () => [files, "--against", old],
        `cannot compare with ${folder.file("old.binpb")}: it has the packages c0, c1, c2, c3, c4, and the definition has files.v1`],
      ["an old descriptor set without the selected service", () => [files, "--against", old, "--service", "files.v1.*"],
        `${folder.file("old.binpb")} has no service that matches files.v1.*`],
      ["an old descriptor set that is text", () => [files, "--against", text],
        `${text} is not a binary descriptor set: it is text.`],
      ["a folder", () => [files, "--against", folder.path],
        `--against must be a descriptor set or a git revision, got "${folder.path}": `],
      ["a revision that looks like an option", () => [files, "--against=--all"],
        '--against must be a descriptor set or a git revision, got "--all": '],
      ["an unreadable file of accepted changes", () => [now, "--against", old, "--accept", missing],
        `cannot read ${missing}: `],
      ["two output formats", () => [now, "--against", old, "--json", "--github"],
        "--json and --github cannot be combined"],
      ["--accept without --against", () => [now, "--accept", missing], "--accept requires --against"],
      ["--github without --against", () => [now, "--github"], "--github requires --against"],
      ["--source-root without --against", () => [now, "--source-root", "."], "--source-root requires --against"],
    ],
  )("given %s, exits with 2 and the reason", async ([, args, problem]) => {
    const { exitCode, stdout, stderr } = await check(...args());
    expect([exitCode, stdout, stderr.slice(0, problem.length)]).toEqual([2, "", problem]);
  });
});

// npx @protoport/proxy check SET --against REVISION, in a repository with the buf.yaml from protoport/docs/how-to/gateway.md

const packageProto = "node_modules/@protoport/gateway/proto";

const bufYaml = `version: v2
modules:
  - path: proto
  - path: ${packageProto}
    lint:
      ignore: [${packageProto}]
`;

const visibility = `syntax = "proto3";
package google.api;
import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { VisibilityRule field_visibility = 72295727; }
message VisibilityRule { string restriction = 2; }
`;

const definition = (field: string): string => `syntax = "proto3";
package shop.v1;
import "google/api/annotations.proto";
import "google/api/visibility.proto";
service Shop { rpc Get(Item) returns (Item) { option (google.api.http) = {get: "/${field}"}; } }
message Item { string ${field} = ${field.length} [(google.api.field_visibility).restriction = "INTERNAL"]; }
`;

// The inner folder is a package with its own buf.yaml and node_modules. buf treats "#" in an input's path as the start
// of options.
const outer = folder.file("shop #1");
const inner = join(outer, "services/shop");
const temporary = folder.file("temporary");
const PATH = [join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
const git = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
const environment = { PATH, TMPDIR: temporary, ...git };
const run = async (at: string, program: string, ...args: readonly string[]): Promise<ProgramResult> =>
  await runProgram(program, args, { folder: at, environment });

const checkRevision = async (at: string, revision: string, ...flags: readonly string[]): Promise<ProgramResult> =>
  await run(at, process.execPath, main, "check", "now.binpb", "--against", revision, ...flags);

async function commit(): Promise<void> {
  await run(outer, "git", "add", ".");
  const author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
  expect(await run(outer, "git", ...author, "commit", "-qm", "One")).toMatchObject({ exitCode: 0 });
}

beforeAll(async () => {
  mkdirSync(temporary);
  mkdirSync(outer);
  await run(outer, "git", "init", "-q");
  folder.write("shop #1/.gitignore", "node_modules\nnow.binpb\n");
  await commit();
  for (const at of ["shop #1", "shop #1/services/shop"]) {
    mkdirSync(folder.file(`${at}/proto/google/api`), { recursive: true });
    folder.write(`${at}/proto/google/api/visibility.proto`, visibility);
    cpSync(join(projectFolder, "protoport/gateway/proto"), folder.file(`${at}/${packageProto}`), { recursive: true });
    folder.write(`${at}/buf.yaml`, bufYaml);
    folder.write(`${at}/proto/shop.proto`, definition("id"));
  }
  await commit();
  for (const at of ["shop #1", "shop #1/services/shop"]) {
    folder.write(`${at}/proto/shop.proto`, definition("key"));
    expect(await run(folder.file(at), "buf", "build", "-o", "now.binpb")).toMatchObject({ exitCode: 0, stderr: "" });
  }
}, 60_000);

describe("a git revision for --against", () => {
  test.for([
    { name: "of the root folder", at: outer },
    { name: "of a subfolder", at: inner },
  ])("$name is compiled with the packages in the current node_modules", async ({ at }) => {
    const { exitCode, stdout, stderr } = await checkRevision(at, "HEAD");
    expect([exitCode, stderr]).toEqual([1, ""]);
    expect(stdout).toContain("shop.proto:5: error: route-removed shop.v1.Shop.Get GET /id\n");
    expect(readdirSync(temporary)).toEqual([]);
  });

  test("has no restricted fields with --visibility", async () => {
    const { stdout } = await checkRevision(outer, "HEAD", "--visibility", "PARTNER");
    expect(stdout).toMatch(/\n1 change breaks clients, 0 may; 0 accepted\.\n\n.*route-removed/);
  });

  test("changes neither the index nor the files of the repository", async () => {
    const status = async (): Promise<ProgramResult> => await run(outer, "git", "status", "--porcelain", "--ignored");
    const before = await status();
    await checkRevision(inner, "HEAD");
    expect(await status()).toEqual(before);
    expect(readdirSync(join(inner, packageProto))).toContain("google");
  });

  test("is refused if the current folder does not exist in it", async () => {
    const stderr = "cannot build the definition of HEAD~1 with buf: it has no folder services/shop\n";
    expect(await checkRevision(inner, "HEAD~1")).toEqual({ exitCode: 2, stdout: "", stderr });
    expect(readdirSync(temporary)).toEqual([]);
  });

  test.for(["SIGINT", "SIGTERM", "SIGHUP"])("leaves no temporary files when %s ends the command", async (signal) => {
    const programs = folder.file(signal);
    mkdirSync(programs);
    chmodSync(folder.write(`${signal}/buf`, `#!/bin/sh\nkill -${signal.slice(3)} $PPID\nexec sleep 60\n`), 0o755);
    const path = [programs, environment.PATH].join(delimiter);
    const args = [main, "check", "now.binpb", "--against", "HEAD"];
    const options = { folder: outer, environment: { ...environment, PATH: path } };
    expect(await runProgram(process.execPath, args, options)).toEqual({ exitCode: null, stdout: "", stderr: "" });
    expect(readdirSync(temporary)).toEqual([]);
  });

  test("is refused if buf is not installed", async () => {
    const path = dirname((await run(outer, "which", "git")).stdout);
    const args = [main, "check", "now.binpb", "--against", "HEAD"];
    const options = { folder: outer, environment: { ...environment, PATH: path } };
    const stderr = 'cannot build the definition of HEAD with buf: the program "buf" is not installed\n';
    expect(await runProgram(process.execPath, args, options)).toMatchObject({ exitCode: 2, stderr });
  });

  test("is refused with buf's error if its definition does not compile", async () => {
    folder.write("shop #1/proto/shop.proto", "no");
    await commit();
    const { exitCode, stderr } = await checkRevision(outer, "HEAD");
    const compiled = /^cannot build the definition of HEAD with buf: .*shop\.proto:1:1:/;
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(compiled)]);
  });
});
