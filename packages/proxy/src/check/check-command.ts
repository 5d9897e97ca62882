import type { DescService } from "@bufbuild/protobuf";
import {
  type CommandOf,
  type CommandOutput,
  type ParsedFlags,
  textOf,
  textsOf,
} from "@plantstore/gateway/internal/command-line";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { createNameFilter, describeBinding } from "@plantstore/gateway/rest";
import { readRules } from "./read-rules.ts";
import { InputError } from "./input-error.ts";
import { readServices } from "./read-services.ts";
import { writeReport } from "./report.ts";
import { parseProfile, parseSwitches, profileNames, switchNames, toRestOptions } from "./rest-switches.ts";
import { type Survey, checkServices } from "./survey.ts";
import { labelsOf, visibilityFlag } from "./visibility-flag.ts";

/** Reports whether the gateway would start with the services of a descriptor set, and if not, every reason. */
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
    json: { about: "prints the report as JSON" },
  },
  notes: ["Exit code: 0 if the gateway would start, 1 if not, 2 if an argument or a file is not valid."],
  run: async (flags, [file = ""], terminal) => {
    try {
      return await check(file, flags, terminal);
    } catch (error) {
      // Unexpected errors are printed as a message too: a stack trace does not help users who check a definition.
      terminal.err(error instanceof InputError ? error.message : `cannot check the definition: ${messageOf(error)}`);
      return 2;
    }
  },
};

async function check(file: string, flags: ParsedFlags, { out, err }: CommandOutput): Promise<number> {
  const switches = parseSwitches(textsOf(flags["rest"]));
  const profile = parseProfile(textOf(flags["rest-profile"]) ?? "strict");
  const isSelected = createNameFilter(textsOf(flags["service"]));
  const rulesFile = textOf(flags["rules"]);
  const read = await readServices(file, labelsOf(flags));
  read.warnings.forEach((problem) => err(problem));
  const services = read.services.filter(({ typeName }: DescService) => isSelected?.(typeName) ?? true);
  if (services.length === 0) throw new InputError(`${file} has no service that matches --service`);
  const rules = rulesFile === undefined ? [] : await readRules(rulesFile);
  const rest = { ...toRestOptions(switches, profile), omit: textsOf(flags["omit"]), rules, ignoreUnregistered: true };
  const result = await checkServices(services, rest, textsOf(flags["mcp"]));
  out(flags["json"] === true ? JSON.stringify(toJson(result)) : writeReport(file, result));
  return result.problems.length === 0 ? 0 : 1;
}

function toJson({ services, bindings, problems, tools }: Survey): object {
  return {
    services: services.map(({ typeName }) => typeName),
    routes: bindings.map(describeBinding),
    problems,
    ...(tools && { tools: { ...tools, names: Object.fromEntries(tools.names) } }),
  };
}
