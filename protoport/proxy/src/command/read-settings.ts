import {
  type Flag,
  formatFlag,
  formatColumns,
  type ParsedFlags,
  type SettingFlags,
  textOf,
  textsOf,
  UsageError,
} from "@protoport/command-line";
import { readInput } from "../definitions/index.ts";
import {
  flagsOfSettings,
  parseServiceFlag,
  type ProxyConfiguration,
  readProxyConfiguration,
} from "../settings/index.ts";
import { type ProxySettings, toProxySettings } from "./proxy-settings.ts";

/** Maximum configuration file size in bytes. 1 MiB is enough for several thousand upstreams. */
const maxConfigurationBytes = 1024 * 1024;

const flagTexts: Readonly<Record<string, Flag>> = Object.fromEntries(
  flagsOfSettings().map(({ name, placeholder, multiple, about, fallback }) => [
    name,
    {
      about: `${about.replaceAll("`", "")}${hasDefault(fallback) ? ` Default ${String(fallback)}.` : ""}`,
      ...(placeholder !== undefined && { value: placeholder }),
      ...(multiple === true && { multiple }),
    },
  ]),
);

/** The flags for settings, with descriptions from the setting table. */
export const settingFlags: SettingFlags = {
  flags: flagTexts,
  help: [
    "Settings, which a configuration file can also contain (protoport/docs/reference/proxy-configuration.md):",
    "",
    ...formatColumns(Object.entries(flagTexts).map(([name, flag]) => [formatFlag(name, flag), flag.about])),
  ],
};

/** Returns whether the help shows a default. Numbers and names are shown, but not `false`. */
function hasDefault(fallback: unknown): boolean {
  return typeof fallback === "number" || typeof fallback === "string";
}

/** Reads the settings from flags and the `--config` file. @throws UsageError, SettingsProblem or InputError */
export async function readSettings(flags: ParsedFlags): Promise<ProxySettings> {
  const path = textOf(flags["config"]);
  if (path === undefined) requireUpstream(flags);
  const file = path === undefined ? undefined : { name: path, text: await readInput(path, maxConfigurationBytes) };
  const read = readProxyConfiguration(file, flags);
  requireAddresses(read.settings, textsOf(flags["service"]));
  return await toProxySettings(read);
}

/** @throws UsageError if a flag `--service ADDRESS=NAME` has an address that no upstream has */
function requireAddresses({ upstreams }: ProxyConfiguration, services: readonly string[]): void {
  const known = upstreams.flatMap(({ addresses }) => addresses);
  for (const { address } of services.map(parseServiceFlag)) {
    if (address === undefined || known.includes(address)) continue;
    throw new UsageError(`--service must have the address of an upstream before "=", got "${address}"`);
  }
}

/** @throws UsageError if flags alone do not define upstreams and their descriptors */
function requireUpstream(flags: ParsedFlags): void {
  const { reflection = false, descriptors } = flags;
  const upstreams = textsOf(flags["upstream"]);
  if (upstreams.length === 0) throw new UsageError("--upstream or --config is missing");
  if (reflection === (descriptors !== undefined))
    throw new UsageError("exactly one of --reflection and --descriptors is required");
  if (descriptors !== undefined && upstreams.length > 1)
    throw new UsageError("--descriptors requires exactly one --upstream; for several, use --reflection or --config");
}
