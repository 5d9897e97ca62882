import { readFileSync } from "node:fs";
import { proxySettingNames } from "../../protoport/tools/proxy-setting-names.ts";
import { settings } from "../../src/server/settings.ts";
import { moduleOf, type Mutant, mutantsIn } from "./mutant.ts";
import { ProjectCopy } from "./project-copy.ts";
import { rejectedMutants } from "./rejected-mutants.ts";
import type { PassedFile } from "./test-server.ts";

/** A mutant in which a setting has less or no effect. A comparison of the setting's values must fail. */
export interface SettingMutant extends Mutant {
  /** Returns whether a test compares the setting's values. The tests for which the function returns true run first. */
  readonly isCompared: (test: string) => boolean;
  /** Whether the mutant is also killed if any other comparison fails. */
  readonly hasOthers: boolean;
}

/** A command with settings. */
interface SettingsProgram {
  /** The comparison files. */
  readonly tests: readonly string[];
  /** The setting names. */
  readonly names: readonly string[];
  /** The code that reads a setting, and the same code for all settings except one. */
  readonly reader: {
    readonly file: string;
    readonly code: string;
    readonly without: (setting: string) => string;
  };
  /** The files that pass settings to the code that they configure. */
  readonly wiring: readonly string[];
}

const plantStore: SettingsProgram = {
  tests: [
    "test/suites/long/server/setting-effects.test.ts",
    "test/suites/long/stores/postgres/setting-effects.test.ts",
  ],
  names: Object.keys(settings),
  reader: {
    file: "src/server/configuration.ts",
    code: 'if (source !== "default") values.set(key, at);',
    without: (setting) => `if (source !== "default" && key !== ${JSON.stringify(setting)}) values.set(key, at);`,
  },
  wiring: ["src/server/create-plant-server.ts", "src/server/start-server.ts", "src/server/credential-settings.ts"],
};

const proxyCommand = "protoport/proxy/src/command";
const proxy: SettingsProgram = {
  tests: ["protoport/proxy/test/suites/long/command/setting-effects.test.ts"],
  names: proxySettingNames(),
  reader: {
    file: "protoport/command-line/src/settings/setting-types.ts",
    code: "if (member !== undefined) return [name, type.read(member, report)];",
    without: (setting) =>
      `if (memberPath(at.path, name).replaceAll(/\\[\\d+\\]/g, "[]") === ${JSON.stringify(setting)}) return [name, fallback];
        if (member !== undefined) return [name, type.read(member, report)];`,
  },
  wiring: ["access-checks", "proxy-server", "proxy-settings", "serving-parts", "upstream-settings"].map(
    (name) => `${proxyCommand}/${name}.ts`,
  ),
};

/** The beginnings of members that have a setting's name, but do not pass the setting on. */
const notPassedOn = [
  // The following members are fields in log lines.
  "port: address.port",
  "publicUrl: publicUrl?.href",
  // This member has setting names for messages.
  "tokenHashesFile: credentialSettings",
  // This member belongs to the readiness check, because the server is not ready without descriptors.
  "descriptors: { problem",
];

const programs: readonly SettingsProgram[] = [plantStore, proxy];

/**
 * Returns a mutant for each setting in which the setting is not read, and a mutant for each place that passes its value
 * on.
 */
export function settingMutants(): SettingMutant[] {
  return programs.flatMap((program) => [...unreadSettings(program), ...unwiredSettings(program)]);
}

/** @throws Error if the reader's code has changed, so that no setting can be removed from the code */
function unreadSettings({ names, reader: { file, code, without } }: SettingsProgram): SettingMutant[] {
  const source = readFileSync(file, "utf8");
  if (source.split(code).length !== 2) throw new Error(`${file} must contain once: ${code}`);
  return names.map((setting) => ({
    kind: "member",
    file,
    module: moduleOf(file),
    line: source.slice(0, source.indexOf(code)).split("\n").length,
    text: code,
    change: setting,
    source: source.replace(code, () => without(setting)),
    block: 0,
    isCompared: (test) => test.split(" ").includes(setting),
    hasOthers: false,
  }));
}

function unwiredSettings({ names, wiring }: SettingsProgram): SettingMutant[] {
  const members = new Set(names.map((path) => path.replace(/^.*\./, "").replace("[]", "")));
  const mutants = wiring.flatMap(mutantsIn).filter(({ kind }) => kind === "member");
  return mutants.flatMap((mutant) => {
    const [member = ""] = /^\w+/.exec(mutant.change) ?? [];
    if (!members.has(member) || notPassedOn.some((start) => mutant.change.startsWith(start))) return [];
    const isCompared = (test: string): boolean => new RegExp(`(?:^|[ .])${member}(?:$| )`).test(test);
    return [{ ...mutant, isCompared, hasOthers: true }];
  });
}

/** Runs each mutant's comparisons, and returns the mutants that no test notices. */
export async function findUnnoticedSettings(): Promise<SettingMutant[]> {
  using copy = new ProjectCopy(process.cwd());
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  process.once("exit", () => copy[Symbol.dispose]());
  const all = settingMutants();
  const rejected = await rejectedMutants(copy.folder, all);
  const tests = programs.flatMap((program) => program.tests);
  const { files, failure } = await copy.runAllTests(tests, []);
  if (failure !== undefined) throw new Error(`fails without a mutant: ${failure}`);
  const unnoticed: SettingMutant[] = [];
  for (const mutant of all.filter((each) => !rejected.has(each))) {
    const failed = await failureOf(mutant, files, copy);
    if (failed === undefined) unnoticed.push(mutant);
    const status = failed === undefined ? "SURVIVED" : "killed";
    console.log(`${status}  ${mutant.file}:${mutant.line}  ${mutant.change}  ${failed ?? mutant.text}`);
  }
  console.log(`${unnoticed.length} of ${all.length} mutants survived, ${rejected.size} do not compile`);
  return unnoticed;
}

async function failureOf(
  { file, source, isCompared, hasOthers }: SettingMutant,
  files: readonly PassedFile[],
  copy: ProjectCopy,
): Promise<string | undefined> {
  using _ = copy.replace(file, source);
  for (const isFirst of hasOthers ? [true, false] : [true]) {
    const ofProgram = programs.find(({ reader, wiring }) => [reader.file, ...wiring].includes(file))?.tests ?? [];
    const tests = files
      .filter((each) => ofProgram.includes(each.file))
      .map((each) => [each.file, each.passed.filter(({ name }) => isCompared(name) === isFirst).map(({ id }) => id)]);
    const selected = Object.fromEntries(tests.filter(([, ids]) => ids !== undefined && ids.length > 0));
    if (Object.keys(selected).length === 0) continue;
    const { failure } = await copy.runTests(selected, 120);
    if (failure !== undefined) return failure;
  }
  return undefined;
}
