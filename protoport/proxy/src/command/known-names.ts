import { fileURLToPath } from "node:url";
import { readRegularFile } from "@protoport/command-line";
import { describeUnusedLabels } from "@protoport/gateway/descriptors";
import { messageOf } from "@protoport/gateway/errors";
import { noBytes } from "@protoport/gateway/exchange";
import { createNameFilter, selectorOf, unmatchedPatterns } from "@protoport/gateway/rest";
import type { ProxiedUpstreamOptions, ProxyGateway } from "../create-proxy.ts";
import {
  createDescriber,
  maxDefinitionBytes,
  describeUnusedRules,
  findUnknownNames,
  findUnknownSelectors,
  findUnknownServices,
  namesIn,
  selectableNames,
} from "../definitions/index.ts";
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
  const parts = messageOf(error).split(/'| is /);
  const unreadable = settings.upstreams.findIndex(
    ({ descriptors }) => descriptors instanceof URL && parts.includes(fileURLToPath(descriptors)),
  );
  if (unreadable >= 0) {
    const problem = `requires a readable file: ${messageOf(error)}`;
    // Not a SettingsProblem, because `wait` waits for the file.
    throw new Error(settings.problemAt(`upstreams[${unreadable}].descriptors`, problem).message);
  }
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
  return await readRegularFile(fileURLToPath(descriptors), maxDefinitionBytes).catch(() => noBytes);
}

function isOfFile({ descriptors }: ProxiedUpstreamOptions): boolean {
  return descriptors !== "reflection";
}

/** The proxy members that {@link describeUnusedNames} reads. */
type ServedNames = Pick<ProxyGateway, "services" | "hiddenRpcs" | "visibilityLabels" | "descriptorReloads">;

/** Returns a line for each service or RPC name in the settings that is misspelled, not served, or hidden. */
export function describeUnusedNames(
  { services, hiddenRpcs, visibilityLabels, descriptorReloads }: ServedNames,
  settings: ProxySettings,
): readonly string[] {
  const { upstreams, rest, restServices, configuredMethods, authentication, visibility } = settings;
  const { typeNames, rpcs, paths } = selectableNames(services);
  const selected = selectedServices(upstreams, descriptorReloads);
  const describe = createDescriber(hiddenRpcs);
  const openable = [...typeNames, ...paths];
  const configurable = [...typeNames, ...rpcs];
  const { open = [], scopes = {} } = authentication ?? {};
  return [
    ...describe(unmatchedPatterns(selected, typeNames), typeNames, inSetting("upstreams[].services"), noService),
    ...describeUnusedRules(rest.rules ?? [], rpcs, hiddenRpcs),
    ...describe(unmatchedPatterns(restServices, typeNames), typeNames, inSetting("rest.services"), noService),
    ...describe(findUnknownNames(configuredMethods, configurable), configurable, inSetting("methodConfig"), noName),
    ...describe(findUnknownNames(open, openable), openable, inSetting("authentication.open"), noName),
    ...describe(
      unmatchedPatterns(Object.keys(scopes), rpcs),
      rpcs,
      (name) => `authentication.scopes.${name} has no effect`,
      "no served RPC matches this name",
    ),
    ...describe(findUnknownNames(rest.omit ?? [], rpcs), rpcs, inSetting("rest.omit"), "no served RPC has this name"),
    ...describeUnusedTools(services, settings, describe),
    ...describeUnusedLabels(visibility, visibilityLabels),
  ];
}

const noService = "no served service matches this name";
const noName = "no served service or RPC has this name";

/** Returns a function that returns the beginning of a line about a name in a setting. */
function inSetting(setting: string): (name: string) => string {
  return (name) => `${setting} has no effect for ${name}`;
}

/** Returns a line for each name in `mcp` that has no effect. */
function describeUnusedTools(
  services: ServedNames["services"],
  { tools = [], paramHeaders = {} }: ProxySettings,
  describe: ReturnType<typeof createDescriber>,
): readonly string[] {
  const { callableRpcs } = selectableNames(services);
  const isTool = createNameFilter(tools);
  const methods = services.flatMap((service) => service.methods).filter((each) => isTool?.(selectorOf(each)) === true);
  const fields = methods.flatMap(({ input }) => input.fields.map(({ name }) => `${input.typeName}.${name}`));
  return [
    ...describe(
      unmatchedPatterns(tools, callableRpcs),
      callableRpcs,
      (name) => `--mcp ${name} has no effect`,
      "no served RPC matches that can be a tool",
    ),
    ...describe(
      findUnknownNames(Object.keys(paramHeaders), fields),
      fields,
      inSetting("mcp.paramHeaders"),
      "no tool's request has this field",
    ),
  ];
}

/** Returns the `services` patterns for all upstreams with known descriptors. */
function selectedServices(
  upstreams: ProxySettings["upstreams"],
  reloads: ServedNames["descriptorReloads"],
): readonly string[] {
  const known = upstreams.filter((_, at) => reloads[at]?.lastSuccessMs !== undefined);
  return known.flatMap(({ services = [] }) => services);
}
