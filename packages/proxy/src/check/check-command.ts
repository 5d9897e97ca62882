import type { DescService } from "@bufbuild/protobuf";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { createNameFilter } from "@plantstore/gateway/rest";
import { parseOptions } from "./parse-options.ts";
import { readRules } from "./read-rules.ts";
import { InputProblem, readServices } from "./read-services.ts";
import { writeReport } from "./report.ts";
import { parseProfile, parseSwitches, switchNames, toRestOptions } from "./rest-switches.ts";
import { survey } from "./survey.ts";

const usage = `Usage: npx @plantstore/proxy check SET [options]

Reports whether the gateway would start with the services of SET, a binary descriptor set, and otherwise every reason.
SET comes from \`buf build -o set.binpb\`, or from \`protoc --include_imports --descriptor_set_out=set.binpb\`.

  --service NAME   these services alone; NAME ends with * for all that begin so; may be repeated
  --rest OPTION    with this option of rest for all services; may be repeated:
                   ${inLines(switchNames, 19)}
  --rest-profile NAME
                   with the options of this profile: strict (default), google, grpc-gateway or envoy
  --omit RPC       with this RPC in rest.omit, as package.Service.Method; may be repeated
  --rules FILE     with these rules from outside: a service config as YAML or JSON
  -h, --help       prints this

Exit code: 0 if the gateway would start, 1 if not, 2 if what was given cannot be read.`;

/** Where a command writes to. */
export interface Output {
  readonly print: (text: string) => void;
  readonly complain: (text: string) => void;
}

/**
 * Runs `check` with the words that follow it on a command line.
 *
 * @returns the exit code: 0 if a gateway would start, 1 if not, 2 for words or files that cannot be used
 */
export async function checkCommand(words: readonly string[], { print, complain }: Output): Promise<number> {
  try {
    const given = parseWords(words);
    if (given === "help") {
      print(usage);
      return 0;
    }
    const { file, switches, profile, omit, rulesFile, isMeant } = given;
    const read = await readServices(file);
    read.omitted.forEach((problem) => complain(problem));
    const services = read.services.filter(isMeant);
    if (services.length === 0) throw new InputProblem(`${file} has no service of such a name`);
    const rules = rulesFile === undefined ? [] : await readRules(rulesFile);
    const rest = { ...toRestOptions(switches, profile), omit, rules, ignoreUnregistered: true };
    const found = await survey(services, rest);
    print(writeReport(file, found));
    return found.problems.length === 0 ? 0 : 1;
  } catch (error) {
    // Of a defect too: whoever checks a definition can do nothing with a stack.
    complain(error instanceof InputProblem ? error.message : `the definition cannot be checked: ${messageOf(error)}`);
    return 2;
  }
}

function parseWords(words: readonly string[]) {
  const { values, positionals } = parse(words);
  if (values.help === true) return "help";
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new InputProblem(usage);
  const { service = [], rest = [], "rest-profile": profile = "strict", omit = [], rules: rulesFile } = values;
  const isMeant = createNameFilter(service);
  return {
    file,
    switches: parseSwitches(rest),
    profile: parseProfile(profile),
    omit,
    rulesFile,
    isMeant: ({ typeName }: DescService): boolean => isMeant?.(typeName) ?? true,
  };
}

function parse(words: readonly string[]) {
  const several = { type: "string", multiple: true } as const;
  const options = {
    service: several,
    rest: several,
    "rest-profile": { type: "string" },
    omit: several,
    rules: { type: "string" },
    help: { type: "boolean", short: "h" },
  } as const;
  return parseOptions(words, options, usage);
}

/** Returns the names in lines of three. */
function inLines(names: readonly string[], indent: number): string {
  const lines = names.map((name, at) =>
    at === 0 ? name : at % 3 === 0 ? `,\n${" ".repeat(indent)}${name}` : `, ${name}`,
  );
  return lines.join("");
}
