import { mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { proxyCommand } from "../../../../src/command/program.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { file_files_v1_files } from "../../../../../testing/src/gen/files/v1/files_pb.ts";
import { file_kitchensink_v1_kitchen_sink } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { projectFolder, type ProgramResult, runProgram } from "../../../../../testing/src/process/child-program.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";
import { buildCases } from "../compare/build-cases.ts";

// npx @protoport/proxy check SET --against OLD

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
const types = "enum Color { NONE = 0; RED = 1; }";
const renamed = "enum Color { NONE = 0; CRIMSON = 1; }";

const visibleTo = (labels: string): string => `option (google.api.method_visibility).restriction = "${labels}";`;

let old: string;
let now: string;
beforeAll(async () => {
  const built = await buildCases([
    {
      name: "a route and a value change, and a field is renamed",
      reports: [],
      old: { req: "string item_id = 1; Color color = 2;", types },
      now: {
        http: 'post: "/calls" body: "*"',
        req: 'string id = 1 [json_name = "itemId"]; Color color = 2;',
        types: renamed,
      },
    },
    {
      name: "a default changes",
      reports: [],
      old: { req: "string item_id = 1;" },
      now: { req: 'string id = 1 [json_name = "itemId"];' },
    },
    {
      name: "an RPC keeps one of its labels",
      reports: [],
      old: { options: visibleTo("INTERNAL, PARTNER") },
      now: { options: visibleTo("PARTNER") },
    },
    { name: "a rule is not valid", reports: [], old: {}, now: { http: 'get: "/{nope}"' } },
  ]);
  old = folder.write("old.binpb", built.old);
  now = folder.write("now.binpb", built.now);
}, 60_000);

async function check(...args: readonly string[]): Promise<ProgramResult> {
  const output: string[] = [];
  const errors: string[] = [];
  const exitCode = await proxyCommand(["check", ...args], {
    stopRequested: () => new Promise<never>(() => undefined),
    onHangup: () => undefined,
    out: (text) => void output.push(text),
    err: (text) => void errors.push(text),
  });
  return { exitCode, stdout: output.join("\n"), stderr: errors.join("\n") };
}

const inFirst = ["--service", "c0.*"];

describe("check --against", () => {
  test("reports each change with its location and its effect on clients", async () => {
    expect(await check(now, "--against", old, ...inFirst)).toEqual({
      exitCode: 1,
      stderr: "",
      stdout: `${now}: 1 service, 1 RPC

The gateway would start: 1 service with 1 REST binding.

2 changes break clients, 1 may; 0 accepted.

c0.proto:13: error: route-removed c0.S.Call POST /call
  changed: the RPC has POST /calls
  before:  POST /call called c0.S.Call
  now:     404

c0.proto:25: error: enum-value-renamed c0.Color.RED
  changed: RED is CRIMSON
  before:  "RED" in requests to POST /c0.S/Call
  now:     400: unknown value "RED"

c0.proto:20: warning: field-name-changed c0.Req.item_id
  changed: item_id is id
  before:  item_id in JSON or in the query of POST /c0.S/Call
  now:     400: unknown field item_id`,
    });
  });

  test("with --github, prints GitHub Actions annotations with paths below --source-root", async () => {
    const args = ["--against", old, "--github", "--source-root", "some proto:s/"];
    expect(await check(now, ...args, ...inFirst)).toEqual({
      exitCode: 1,
      stderr: "",
      stdout: [
        "::error file=some proto%3As/c0.proto,line=13,title=route-removed::c0.S.Call POST /call: the RPC has POST /calls%0A" +
          "Before: POST /call called c0.S.Call%0ANow: 404",
        "::error file=some proto%3As/c0.proto,line=25,title=enum-value-renamed::c0.Color.RED: RED is CRIMSON%0A" +
          'Before: "RED" in requests to POST /c0.S/Call%0ANow: 400: unknown value "RED"',
        "::warning file=some proto%3As/c0.proto,line=20,title=field-name-changed::c0.Req.item_id: item_id is id%0A" +
          "Before: item_id in JSON or in the query of POST /c0.S/Call%0ANow: 400: unknown field item_id",
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
    expect(JSON.parse(stdout)).toMatchObject({
      services: ["c0.S"],
      problems: [],
      changes: [
        {
          rule: "enum-value-renamed",
          severity: "error",
          subject: "c0.Color.RED",
          change: "RED is CRIMSON",
          before: '"RED" in requests to POST /c0.S/Call',
          now: '400: unknown value "RED"',
          file: "c0.proto",
          line: 25,
        },
        { rule: "field-name-changed", severity: "warning" },
      ],
      accepted: [{ rule: "route-removed", subject: "c0.S.Call POST /call" }],
    });
  });

  test("accepts the changes listed in a file, and reports unused lines", async () => {
    const accept = folder.write(
      "all.txt",
      "# Version 2\nroute-removed c0.S.Call POST /call\r\n\n  enum-value-renamed c0.Color.RED # a typo\nfield-removed c0.Req.x\n",
    );
    const { exitCode, stdout, stderr } = await check(now, "--against", old, "--accept", accept, ...inFirst);
    expect([exitCode, stderr]).toEqual([0, '--accept: "field-removed c0.Req.x" accepts no change']);
    expect(stdout).toContain("\n0 changes break clients, 1 may; 2 accepted.\n\nc0.proto:20: warning: ");
  });

  test("accepts an empty file of accepted changes", async () => {
    const accept = folder.write("empty.txt", "");
    expect(await check(now, "--against", now, "--accept", accept, ...inFirst)).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
  });

  test.for(["strict", "grpc-gateway", "google"])(
    "with the profile %s, reports no change for an unchanged definition",
    async (profile) => {
      const set = folder.write("same.binpb", descriptorSetOf(file_kitchensink_v1_kitchen_sink, file_files_v1_files));
      const { exitCode, stdout } = await check(set, "--against", set, "--rest-profile", profile);
      expect([exitCode, stdout]).toEqual([
        0,
        expect.stringMatching(/\n\n0 changes break clients, 0 may; 0 accepted\.$/),
      ]);
    },
  );

  test("exits with 0 if all changes are warnings", async () => {
    const { exitCode, stdout } = await check(now, "--against", old, "--service", "c1.*");
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining("\n0 changes break clients, 1 may; 0 accepted.\n")]);
  });

  test("with --visibility, reports an RPC that became hidden as removed", async () => {
    const args = ["--against", old, "--service", "c2.*"];
    const reported = "error: visibility-narrowed c2.S.Call\n";
    expect(await check(now, ...args)).toMatchObject({ exitCode: 1, stdout: expect.stringContaining(reported) });
    expect(await check(now, ...args, "--visibility", "PARTNER")).toMatchObject({ exitCode: 0 });
    const removed = expect.stringContaining("error: method-removed c2.S.Call\n");
    expect(await check(now, ...args, "--visibility", "INTERNAL")).toMatchObject({ exitCode: 1, stdout: removed });
  });

  test.for([
    {
      definition: "warns that buf.validate rules are not compared",
      set: () => now,
      service: "c0.*",
      stderr: "buf.validate rules are not compared: install the package @bufbuild/protovalidate to compare them\n",
    },
    {
      definition: "prints no warning for a definition without buf.validate",
      set: () => folder.write("plain.binpb", descriptorSetOf(file_files_v1_files)),
      service: "files.v1.*",
      stderr: "",
    },
  ])("without protovalidate, $definition", async ({ set, service, stderr }) => {
    const hook = `import { registerHooks } from "node:module";
      registerHooks({ resolve(name, context, next) {
        if (name.startsWith("@bufbuild/protovalidate")) throw new Error("not installed");
        return next(name, context);
      } });`;
    const args = ["--import", `data:text/javascript,${encodeURIComponent(hook)}`, main, "check", set()];
    args.push("--against", set(), "--service", service);
    expect(await runProgram(process.execPath, args)).toMatchObject({ exitCode: 0, stderr });
  });

  test("applies --rules, --omit and --visibility to both versions", async () => {
    const rules = folder.write("rules.json", JSON.stringify({ rules: [{ selector: "c3.S.Call", get: "/call" }] }));
    const { exitCode, stdout } = await check(now, "--against", old, "--rules", rules, "--service", "c3.*");
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining("\n0 changes break clients, 0 may; 0 accepted.")]);
    const omitted = await check(now, "--against", old, "--omit", "c3.S.Call", "--service", "c3.*");
    const unchanged = { exitCode: 0, stdout: expect.stringContaining("0 changes break clients, 0 may") };
    expect(omitted).toMatchObject(unchanged);
    const hidden = await check(old, "--against", old, "--visibility", "OTHER", "--service", "c2.*");
    expect(hidden).toMatchObject(unchanged);
  });
});

describe("check --against with invalid input", () => {
  const files = folder.write("files.binpb", descriptorSetOf(file_files_v1_files));
  const text = folder.write("text.binpb", 'syntax = "proto3";');
  const missing = folder.file("missing.txt");

  test.for<{ name: string; args: () => readonly string[]; problem: string }>([
    {
      name: "a descriptor set of another package",
      args: () => [files, "--against", old],
      problem: `cannot compare with ${folder.file("old.binpb")}: it has the packages c0, c1, c2, c3, and the definition has files.v1`,
    },
    {
      name: "an old descriptor set without the selected service",
      args: () => [files, "--against", old, "--service", "files.v1.*"],
      problem: `${folder.file("old.binpb")} has no service that matches --service`,
    },
    {
      name: "an old descriptor set that is text",
      args: () => [files, "--against", text],
      problem: `${text} is not a binary descriptor set: it is text.`,
    },
    {
      name: "a folder",
      args: () => [files, "--against", folder.path],
      problem: `--against must be a descriptor set or a git revision, got "${folder.path}": `,
    },
    {
      name: "a revision that looks like an option",
      args: () => [files, "--against=--all"],
      problem: '--against must be a descriptor set or a git revision, got "--all": ',
    },
    {
      name: "an unreadable file of accepted changes",
      args: () => [now, "--against", old, "--accept", missing],
      problem: `cannot read ${missing}: `,
    },
    {
      name: "two output formats",
      args: () => [now, "--against", old, "--json", "--github"],
      problem: "--json and --github cannot be combined",
    },
    {
      name: "--accept without --against",
      args: () => [now, "--accept", missing],
      problem: "--accept requires --against",
    },
    { name: "--github without --against", args: () => [now, "--github"], problem: "--github requires --against" },
    {
      name: "--source-root without --against",
      args: () => [now, "--source-root", "."],
      problem: "--source-root requires --against",
    },
  ])("given $name, exits with 2 and the reason", async ({ args, problem }) => {
    const { exitCode, stdout, stderr } = await check(...args());
    expect([exitCode, stdout, stderr.slice(0, problem.length)]).toEqual([2, "", problem]);
  });
});

/** Returns a definition with a field. */
function definition(packageName: string, field: string): string {
  const service = "service S { rpc Call(M) returns (M); }";
  return `syntax = "proto3"; package ${packageName}; ${service}\nmessage M { string ${field} = 1; }\n`;
}

describe("a git revision for --against", () => {
  const repository = createTempFolder();
  afterAll(() => repository[Symbol.dispose]());
  const programs = { PATH: [join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter) };

  async function run(program: string, ...args: readonly string[]): Promise<ProgramResult> {
    const environment = { ...programs, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
    return await runProgram(program, args, { folder: repository.path, environment });
  }

  beforeAll(async () => {
    mkdirSync(repository.file("inner"));
    repository.write("a.proto", definition("a", "id"));
    repository.write("inner/b.proto", definition("b", "id"));
    await run("git", "init", "-q");
    await run("git", "add", ".");
    await run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "One");
    repository.write("a.proto", definition("a", "key"));
    repository.write("inner/b.proto", definition("b", "key"));
    expect(await run("buf", "build", "-o", "now.binpb")).toMatchObject({ exitCode: 0 });
  }, 60_000);

  test("is compiled by buf from the committed files", async () => {
    const { exitCode, stdout } = await run(process.execPath, main, "check", "now.binpb", "--against", "HEAD");
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringContaining("a.proto:2: error: field-json-name-changed a.M.id\n"),
    ]);
  });

  test("is compiled in the current folder of the repository", async () => {
    const inner = { folder: repository.file("inner"), environment: programs };
    const args = [main, "check", "../now.binpb", "--against", "HEAD", "--service", "b.S"];
    const { exitCode, stdout } = await runProgram(process.execPath, args, inner);
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringContaining("b.proto:2: error: field-json-name-changed b.M.id\n"),
    ]);
  });

  test("is refused if buf is not installed", async () => {
    const environment = { PATH: dirname((await run("which", "git")).stdout) };
    const args = [main, "check", "now.binpb", "--against", "HEAD"];
    expect(await runProgram(process.execPath, args, { folder: repository.path, environment })).toMatchObject({
      exitCode: 2,
      stderr: 'cannot build the definition of HEAD with buf: the program "buf" is not installed\n',
    });
  });

  test("is refused with buf's error if its definition does not compile", async () => {
    repository.write("a.proto", "no");
    await run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qam", "Two");
    const { exitCode, stderr } = await run(process.execPath, main, "check", "now.binpb", "--against", "HEAD");
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/^cannot build the definition of HEAD with buf: .*a\.proto:1:1:/),
    ]);
  });
});
