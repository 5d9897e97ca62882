import { fileURLToPath } from "node:url";
import { readRegularFile } from "@plantstore/command-line";
import { type DeclaredNames, declaredNames } from "@plantstore/protobuf";
import { createNameFilter, unmatchedPatterns } from "@plantstore/protocols";
import { definitionMaxBytes, describeGot, findUnknownSelectors } from "../check/index.ts";
import { SettingsProblem } from "../settings/index.ts";
import type { ProxySettings } from "./proxy-settings.ts";
import type { UpstreamSettings } from "./upstream-settings.ts";

/**
 * Checks the names of services and RPCs in the settings against the descriptor files. An upstream with reflection may
 * add services later, so its `services` are not checked, and rules only if all upstreams have descriptor files.
 *
 * @throws SettingsProblem that lists the names that no descriptor declares, with their places
 */
export async function requireKnownNames({ upstreams, ruleFiles, problemAt }: ProxySettings): Promise<void> {
  if (ruleFiles.length === 0 && upstreams.every(({ forwarding: { services = [] } }) => services.length === 0)) return;
  const declared = await Promise.all(upstreams.map(readDeclared));
  const ofServices = upstreams.flatMap(({ forwarding: { services = [] } }, at) => {
    const known = declared[at]?.services;
    if (known === undefined) return [];
    return unmatchedPatterns(services, known).map((pattern) => {
      const path = `upstreams[${at}].services[${services.indexOf(pattern)}]`;
      const names = pattern.endsWith("*") ? known.flatMap(prefixesOf) : known;
      return problemAt(path, `must match a service of the descriptors, ${describeGot(pattern, names)}`).message;
    });
  });
  const read = declared.filter((each) => each !== undefined);
  const names = {
    services: upstreams.flatMap(({ forwarding: { services = [] } }, at) =>
      (declared[at]?.services ?? []).filter(createNameFilter(services) ?? (() => true)),
    ),
    rpcs: read.flatMap((each) => each.rpcs),
  };
  const checkedFiles = read.length < upstreams.length ? [] : ruleFiles;
  const ofRules = await Promise.all(checkedFiles.map(({ path, rules }) => findUnknownSelectors(path, rules, names)));
  const problems = [...ofServices, ...ofRules.flat()];
  if (problems.length > 0) throw new SettingsProblem(problems.join("\n"));
}

/**
 * Returns the names in an upstream's descriptor file, or `undefined` for reflection, and for a file that `createProxy`
 * reports.
 */
async function readDeclared({ forwarding: { descriptors } }: UpstreamSettings): Promise<DeclaredNames | undefined> {
  if (!(descriptors instanceof URL)) return undefined;
  try {
    return declaredNames(await readRegularFile(fileURLToPath(descriptors), definitionMaxBytes));
  } catch {
    return undefined;
  }
}

/** Returns the patterns that match a service by its package or a parent of the package. */
function prefixesOf(typeName: string): readonly string[] {
  const parts = typeName.split(".").slice(0, -1);
  return parts.map((_, at) => `${parts.slice(0, at + 1).join(".")}.*`);
}
