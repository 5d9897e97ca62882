import type { DescService } from "@bufbuild/protobuf";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { createNameFilter } from "@plantstore/gateway/rest";
import { parseOptions } from "./parse-options.ts";
import { readRules } from "./read-rules.ts";
import { InputError, readServices } from "./read-services.ts";
import { writeReport } from "./report.ts";
import { parseProfile, parseSwitches, switchNames, toRestOptions } from "./rest-switches.ts";
import { survey } from "./survey.ts";

const usage = `Usage: npx @plantstore/proxy check SET [options]

Reports whether the gateway would start with the services of SET, a binary descriptor set, and if not, every reason.
Create SET with \`buf build -o set.binpb\` or \`protoc --include_imports --descriptor_set_out=set.binpb\`.

  --service NAME   checks only this service; a NAME that ends with * is a prefix; may be repeated
  --rest OPTION    enables this REST option for all services; may be repeated:
                   ${inLines(switchNames, 19)}
  --rest-profile NAME
                   applies the options of this profile: strict (default), google, grpc-gateway, envoy
                   or a2a
  --omit RPC       adds this RPC to rest.omit, as package.Service.Method; may be repeated
  --rules FILE     HTTP rules that replace annotations: a service config in YAML or JSON
  -h, --help       prints this help

Exit code: 0 if the gateway would start, 1 if not, 2 if an argument or a file is not valid.`;

/** The output of a command. */
export interface Output {
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

/**
 * Runs `check` with these command-line arguments.
 *
 * @returns the exit code: 0 if a gateway would start, 1 if not, 2 for invalid arguments or files
 */
export async function checkCommand(args: readonly string[], { print, printError }: Output): Promise<number> {
  try {
    const options = parseArguments(args);
    if (options === "help") {
      print(usage);
      return 0;
    }
    const { file, switches, profile, omit, rulesFile, isSelected } = options;
    const read = await readServices(file);
    read.omitted.forEach((problem) => printError(problem));
    const services = read.services.filter(isSelected);
    if (services.length === 0) throw new InputError(`${file} has no service that matches --service`);
    const rules = rulesFile === undefined ? [] : await readRules(rulesFile);
    const rest = { ...toRestOptions(switches, profile), omit, rules, ignoreUnregistered: true };
    const result = await survey(services, rest);
    print(writeReport(file, result));
    return result.problems.length === 0 ? 0 : 1;
  } catch (error) {
    // Unexpected errors are printed as a message too: a stack trace does not help users who check a definition.
    printError(error instanceof InputError ? error.message : `cannot check the definition: ${messageOf(error)}`);
    return 2;
  }
}

function parseArguments(args: readonly string[]) {
  const { values, positionals } = parse(args);
  if (values.help === true) return "help";
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new InputError(usage);
  const { service = [], rest = [], "rest-profile": profile = "strict", omit = [], rules: rulesFile } = values;
  const isSelected = createNameFilter(service);
  return {
    file,
    switches: parseSwitches(rest),
    profile: parseProfile(profile),
    omit,
    rulesFile,
    isSelected: ({ typeName }: DescService): boolean => isSelected?.(typeName) ?? true,
  };
}

function parse(args: readonly string[]) {
  const repeatable = { type: "string", multiple: true } as const;
  const options = {
    service: repeatable,
    rest: repeatable,
    "rest-profile": { type: "string" },
    omit: repeatable,
    rules: { type: "string" },
    help: { type: "boolean", short: "h" },
  } as const;
  return parseOptions(args, options, usage);
}

/** Joins names, three per line. */
function inLines(names: readonly string[], indent: number): string {
  const lines = names.map((name, at) =>
    at === 0 ? name : at % 3 === 0 ? `,\n${" ".repeat(indent)}${name}` : `, ${name}`,
  );
  return lines.join("");
}
