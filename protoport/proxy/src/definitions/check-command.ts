import type { CommandOf, CommandOutput, ParsedFlags } from "@protoport/command-line";
import { readFlag, textOf, textsOf, UsageError } from "@protoport/command-line";
import { formatted, oneOf } from "@protoport/command-line/settings";
import { messageOf } from "@protoport/gateway/errors";
import { describeBinding, selectorOf } from "@protoport/gateway/rest";
import { type CheckResult, checkDefinition } from "./check-definition.ts";
import { writeAnnotations, writeChanges } from "./compare/index.ts";
import { compareDefinitions } from "./compare-definitions.ts";
import { type Definition, readDefinition, selectServices } from "./definition.ts";
import { InputError } from "./input-error.ts";
import { findUnknownSelectors } from "./known-selectors.ts";
import { readAgainst } from "./read-against.ts";
import { readText } from "./read-input.ts";
import { readRules } from "./read-rules.ts";
import { operationIdsFlag, operationIdsOf } from "./operation-ids-flag.ts";
import { writeReport } from "./report.ts";
import { parseSwitches, profileNames, switchNames, toRestOptions } from "./rest-switches.ts";
import { describeUnusedRules } from "./unused-names.ts";
import { visibilityFlag, visibilityOf } from "./visibility-flag.ts";

/** Maximum size of the file with accepted changes. 1 MiB holds ten thousand changes. */
const acceptedMaxBytes = 1024 * 1024;

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
    out(flags["json"] === true ? JSON.stringify(toJson(definition, result)) : writeReport(definition, result));
    return result.problems.length === 0 ? 0 : 1;
  }
  const accept = textOf(flags["accept"]);
  const changes = await compareDefinitions(select(await readAgainst(against, visibility)), definition, {
    rest,
    ...ids,
    accepted: accept === undefined ? "" : await readText(accept, acceptedMaxBytes),
    sourceRoot: textOf(flags["source-root"]) ?? "",
    onWarning: err,
  });
  for (const line of changes.unused) err(`--accept: "${line}" accepts no change`);
  if (flags["json"] === true)
    out(JSON.stringify({ ...toJson(definition, result), changes: changes.open, accepted: changes.accepted }));
  else if (flags["github"] === true) out(writeAnnotations(changes, result.problems));
  else out(`${writeReport(definition, result)}\n\n${writeChanges(changes)}`);
  return result.problems.length === 0 && changes.open.every(({ severity }) => severity === "warning") ? 0 : 1;
}

function refuseWithoutAgainst(flags: ParsedFlags): void {
  const flag = ["accept", "source-root", "github"].find((name) => flags[name] !== undefined);
  if (flag !== undefined) throw new InputError(`--${flag} requires --against`);
}

function toJson({ services }: Definition, { bindings, problems, tools }: CheckResult): object {
  return {
    services: services.map(({ typeName }) => typeName),
    routes: bindings.map(describeBinding),
    problems,
    ...(tools && { tools: { ...tools, names: Object.fromEntries(tools.names) } }),
  };
}
