import { execFile, type ExecFileOptions } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import {
  type CommandOf,
  type CommandOutput,
  type ParsedFlags,
  readFlag,
  textOf,
  textsOf,
  UsageError,
} from "@protoport/command-line";
import { formatted, oneOf } from "@protoport/command-line/settings";
import type { VisibilityOptions } from "@protoport/gateway/descriptors";
import { messageOf } from "@protoport/gateway/errors";
import { describeBinding, selectorOf } from "@protoport/gateway/rest";
import { checkDefinition, type CheckResult } from "./check-definition.ts";
import { compareDefinitions } from "./compare-definitions.ts";
import { writeAnnotations, writeChanges } from "./compare/index.ts";
import { type Definition, maxDefinitionBytes, parseDefinition, readDefinition, selectServices } from "./definition.ts";
import { InputError, readRules, readText } from "./read-input.ts";
import { describeUnusedRules, findUnknownSelectors } from "./known-selectors.ts";
import {
  operationIdsFlag,
  operationIdsOf,
  parseSwitches,
  profileNames,
  switchNames,
  toRestOptions,
  visibilityFlag,
  visibilityOf,
} from "./definition-flags.ts";
import { writeReport } from "./report.ts";

/** Maximum size of the file with accepted changes. 1 MiB holds ten thousand changes. */
const maxAcceptedBytes = 1024 * 1024;

/**
 * Reports whether the gateway would start with a descriptor set's services, or every reason why it would not. With
 * `--against`, reports the changes that break an older definition's clients, except those that buf reports.
 */
export const checkCommand: CommandOf<CommandOutput> = {
  name: "check",
  summary: "check whether the gateway would start with a definition, without an upstream",
  operands: [
    {
      name: "SET",
      about:
        "a binary descriptor set, made by `buf build -o set.binpb` or `protoc --include_imports --descriptor_set_out=set.binpb`",
    },
  ],
  flags: {
    service: { value: "NAME", about: "checks only this service; a NAME that ends with * is a prefix", multiple: true },
    rest: {
      value: "OPTION",
      about: `enables this REST option for all services: ${switchNames.join(", ")}`,
      multiple: true,
    },
    "rest-profile": {
      value: "NAME",
      about: `applies the options of this profile: ${profileNames.join(", ")}; default strict`,
    },
    omit: { value: "RPC", about: "adds this RPC to rest.omit, as package.Service.Method", multiple: true },
    mcp: {
      value: "RPC",
      about: "lists which RPCs would be tools of AI agents, as --mcp of the proxy selects them",
      multiple: true,
    },
    rules: { value: "FILE", about: "HTTP rules that replace annotations: a service config in YAML or JSON" },
    visibility: visibilityFlag,
    "operation-ids": operationIdsFlag,
    "empty-response": { value: "STATUS", about: "the status of an Empty, as rest.emptyResponse: 200 or 204" },
    against: {
      value: "OLD",
      about:
        "reports which changes of routes, bodies, rules and visibility since OLD break clients, in addition to `buf breaking`; OLD is a descriptor set, or a git revision that buf compiles",
    },
    accept: {
      value: "FILE",
      about: "with --against, accepts the changes in FILE, which has RULE SUBJECT per line and comments after #",
    },
    "source-root": {
      value: "DIR",
      about: "with --against, the folder of the .proto files, for the paths in reports",
    },
    json: { about: "prints the report as JSON" },
    github: { about: "with --against, prints the changes as annotations of GitHub Actions" },
  },
  notes: [
    "Exit code: 0 if the gateway would start and no change breaks clients, 1 if not, 2 if an argument or a file is not valid.",
    "A change that may break clients is a warning, which does not affect the exit code.",
  ],
  run: async (flags, [file = ""], terminal) => {
    try {
      return await check(file, flags, terminal);
    } catch (error) {
      if (error instanceof UsageError) throw error;
      // Unexpected errors are printed as messages, because a stack trace does not help users who check a definition.
      terminal.err(error instanceof InputError ? error.message : `cannot check the definition: ${messageOf(error)}`);
      return 2;
    }
  },
};

const emptyStatus = formatted<200 | 204>("status", "200 or 204", (text) =>
  text === "200" ? 200 : text === "204" ? 204 : undefined,
);

async function check(file: string, flags: ParsedFlags, { out, err }: CommandOutput): Promise<number> {
  const switches = parseSwitches(textsOf(flags["rest"]));
  const profile = readFlag(flags, "rest-profile", oneOf(profileNames));
  const ids = operationIdsOf(flags);
  const emptyResponse = readFlag(flags, "empty-response", emptyStatus) ?? 200;
  const rulesFile = textOf(flags["rules"]);
  const against = textOf(flags["against"]);
  if (against === undefined) refuseWithoutAgainst(flags);
  else if (flags["json"] === true && flags["github"] === true)
    throw new InputError("--json and --github cannot be combined: use one of them");
  const select = (definition: Definition): Definition => {
    definition.warnings.forEach((problem) => err(problem));
    return selectServices(definition, textsOf(flags["service"]));
  };
  const visibility = visibilityOf(flags);
  const definition = select(await readDefinition(file, visibility));
  const rules = rulesFile === undefined ? [] : await readRules(rulesFile);
  if (rulesFile !== undefined) {
    const services = definition.services.map(({ typeName }) => typeName);
    const unknown = await findUnknownSelectors(rulesFile, rules, { services, rpcs: definition.declaredRpcs });
    if (unknown.length > 0) throw new InputError(unknown.join("\n"));
  }
  const served = definition.services.flatMap(({ methods }) => methods.map(selectorOf));
  describeUnusedRules(rules, served, definition.hiddenRpcs).forEach((line) => err(line));
  const omit = textsOf(flags["omit"]);
  const rest = { ...toRestOptions(switches, profile), omit, rules, ignoreUnregistered: true, emptyResponse };
  const result = await checkDefinition(definition, { rest, ...ids, tools: textsOf(flags["mcp"]) });
  if (against === undefined) {
    out(flags["json"] === true ? JSON.stringify(checkToJson(definition, result)) : writeReport(definition, result));
    return result.problems.length === 0 ? 0 : 1;
  }
  const accept = textOf(flags["accept"]);
  const changes = await compareDefinitions(select(await readAgainst(against, visibility)), definition, {
    rest,
    ...ids,
    accepted: accept === undefined ? "" : await readText(accept, maxAcceptedBytes),
    sourceRoot: textOf(flags["source-root"]) ?? "",
    onWarning: err,
  });
  for (const line of changes.unused) err(`--accept: "${line}" accepts no change`);
  if (flags["json"] === true)
    out(JSON.stringify({ ...checkToJson(definition, result), changes: changes.open, accepted: changes.accepted }));
  else if (flags["github"] === true) out(writeAnnotations(changes, result.problems));
  else out(`${writeReport(definition, result)}\n\n${writeChanges(changes)}`);
  return result.problems.length === 0 && changes.open.every(({ severity }) => severity === "warning") ? 0 : 1;
}

function refuseWithoutAgainst(flags: ParsedFlags): void {
  const flag = ["accept", "source-root", "github"].find((name) => flags[name] !== undefined);
  if (flag !== undefined) throw new InputError(`--${flag} requires --against`);
}

function checkToJson({ services }: Definition, { bindings, problems, tools }: CheckResult): object {
  return {
    services: services.map(({ typeName }) => typeName),
    routes: bindings.map(describeBinding),
    problems,
    ...(tools && { tools: { ...tools, names: Object.fromEntries(tools.names) } }),
  };
}

/**
 * Reads an older definition from a descriptor set or a git revision. `buf build` compiles the revision.
 *
 * @throws InputError if `name` is neither a descriptor set nor a revision, or if git or buf fails
 */
async function readAgainst(name: string, visibility: VisibilityOptions | undefined): Promise<Definition> {
  // A folder and a branch can have the same name.
  if (statSync(name, { throwIfNoEntry: false })?.isDirectory() === false) return await readDefinition(name, visibility);
  return parseDefinition(name, await buildRevision(name), visibility);
}

const runFile = promisify(execFile);

/**
 * Compiles a git revision of the current folder with `buf build`. The build uses the current `node_modules` folders,
 * because modules in `buf.yaml` may be npm packages.
 *
 * @throws InputError if git or buf fails
 */
async function buildRevision(revision: string): Promise<Uint8Array> {
  return await untilSignal(async (signal) => {
    const hint = `--against must be a descriptor set or a git revision, got "${revision}"`;
    const revParse = async (...args: readonly string[]): Promise<string> =>
      (await runBuilder("git", ["rev-parse", ...args], hint, { signal })).toString().trim();
    const commit = await revParse("--verify", "--end-of-options", `${revision}^{commit}`);
    const repository = await revParse("--path-format=absolute", "--git-common-dir");
    const subfolders = (await revParse("--show-prefix")).split("/").filter((name) => name !== "");
    const problem = `cannot build the definition of ${revision} with buf`;
    const temporary = mkdtempSync(join(tmpdir(), "check-against-"));
    try {
      const tree = join(temporary, "tree");
      mkdirSync(tree);
      const args = ["--git-dir", repository, "--work-tree", tree, "read-tree", "--reset", "-u", commit];
      // A separate git index leaves the repository's index unchanged.
      const env = { ...process.env, GIT_INDEX_FILE: join(temporary, "index") };
      await runBuilder("git", args, `cannot read ${revision}`, { cwd: tree, env, signal });
      const folder = join(tree, ...subfolders);
      if (!existsSync(folder)) throw new InputError(`${problem}: it has no folder ${subfolders.join("/")}`);
      linkPackages(tree, subfolders);
      return await runBuilder("buf", ["build", "-o", "-"], problem, { cwd: folder, signal });
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
  });
}

/** Creates links to the `node_modules` folders of the current folder and its parents up to the repository's root. */
function linkPackages(tree: string, subfolders: readonly string[]): void {
  for (let depth = 0; depth <= subfolders.length; depth++) {
    const parents = Array.from({ length: subfolders.length - depth }, () => "..");
    const installed = resolve(...parents, "node_modules");
    const link = join(tree, ...subfolders.slice(0, depth), "node_modules");
    // Windows lets every user create a junction.
    if (existsSync(installed) && !existsSync(link)) symlinkSync(installed, link, "junction");
  }
}

const endingSignals = ["SIGHUP", "SIGINT", "SIGTERM"] as const;

/** Runs an action. A signal aborts the action, and stops the process after the action has removed its files. */
async function untilSignal<Result>(action: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const stopping = new AbortController();
  let received: NodeJS.Signals | undefined;
  const stop = (signal: NodeJS.Signals): void => {
    received = signal;
    stopping.abort();
  };
  for (const signal of endingSignals) process.on(signal, stop);
  try {
    return await action(stopping.signal);
  } finally {
    for (const signal of endingSignals) process.off(signal, stop);
    if (received !== undefined) process.kill(process.pid, received);
  }
}

/** Runs a program, and returns its output. @throws InputError that starts with `problem` */
async function runBuilder(
  program: string,
  args: readonly string[],
  problem: string,
  options: ExecFileOptions,
): Promise<Buffer> {
  try {
    const { stdout } = await runFile(program, args, { ...options, encoding: "buffer", maxBuffer: maxDefinitionBytes });
    return stdout;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const stderr = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    const reason = isMissing ? `the program "${program}" is not installed` : stderr || messageOf(error);
    throw new InputError(`${problem}: ${reason}`);
  }
}
