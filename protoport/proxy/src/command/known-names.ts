import { fileURLToPath } from "node:url";
import { readRegularFile } from "@protoport/command-line";
import { noBytes } from "@protoport/gateway/exchange";
import { messageOf } from "@protoport/gateway/errors";
import { createNameFilter } from "@protoport/gateway/rest";
import { definitionMaxBytes, findUnknownSelectors, findUnknownServices, namesIn } from "../definitions/index.ts";
import type { ProxiedUpstreamOptions } from "../create-proxy.ts";
import { SettingsProblem } from "../settings/index.ts";
import type { ProxySettings } from "./proxy-settings.ts";

/**
 * Checks the names of services and RPCs in the settings against the descriptor files. `services` is not checked for an
 * upstream with reflection, because the upstream may add services later. Rules are checked only if all upstreams have
 * descriptor files.
 *
 * @param sets - each upstream's descriptor set in use, or an empty array if the set is not known
 * @throws SettingsProblem that lists the undeclared names and their file positions
 */
export async function requireKnownNames(
  { upstreams, ruleFiles, problemAt }: ProxySettings,
  sets: readonly Uint8Array[],
): Promise<void> {
  if (ruleFiles.length === 0 && upstreams.every(({ services = [] }) => services.length === 0)) return;
  const declared = upstreams.map((upstream, at) => (isOfFile(upstream) ? namesIn(sets[at]) : undefined));
  const ofServices = upstreams.flatMap(({ services = [] }, at) => {
    const known = declared[at]?.services;
    if (known === undefined) return [];
    return findUnknownServices(services, known).map(({ pattern, problem }) => {
      return problemAt(`upstreams[${at}].services[${services.indexOf(pattern)}]`, problem).message;
    });
  });
  const read = declared.filter((each) => each !== undefined);
  const names = {
    services: upstreams.flatMap(({ services = [] }, at) =>
      (declared[at]?.services ?? []).filter(createNameFilter(services) ?? (() => true)),
    ),
    rpcs: read.flatMap((each) => each.rpcs),
  };
  const checkedFiles = read.length < upstreams.length ? [] : ruleFiles;
  const ofRules = await Promise.all(checkedFiles.map(({ path, rules }) => findUnknownSelectors(path, rules, names)));
  const problems = [...ofServices, ...ofRules.flat()];
  if (problems.length > 0) throw new SettingsProblem(problems.join("\n"));
}

/** @throws SettingsProblem if the settings have unknown names or cause the error; otherwise the given error */
export async function failForSettings(
  { settings }: { readonly settings: ProxySettings },
  error: unknown,
): Promise<never> {
  await requireKnownNames(settings, await readFiles(settings));
  const [, path, problem] = /^(upstreams\[\d+\]\.\S+) ([^]*)/.exec(messageOf(error)) ?? [];
  throw path === undefined || problem === undefined ? error : settings.problemAt(path, problem);
}

/** Returns the contents of the upstreams' descriptor files. */
export async function readFiles({ upstreams }: ProxySettings): Promise<readonly Uint8Array[]> {
  return await Promise.all(upstreams.map(readSet));
}

/** Returns the content of an upstream's descriptor file. Returns no bytes for reflection or an unreadable file. */
async function readSet({ descriptors }: ProxiedUpstreamOptions): Promise<Uint8Array> {
  if (!(descriptors instanceof URL)) return noBytes;
  return await readRegularFile(fileURLToPath(descriptors), definitionMaxBytes).catch(() => noBytes);
}

function isOfFile({ descriptors }: ProxiedUpstreamOptions): boolean {
  return descriptors !== "reflection";
}
