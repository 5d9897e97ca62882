/**
 * How is the proxy configured? One setting table (`setting-table.ts` and the tables that it includes), from which the
 * reader, the JSON Schema, the reference page and the flags are derived.
 *
 * Flow: YAML → values with their lines (`located.ts`) → flag values replace them → each is read by its type. Opens
 * no socket. Reads only secret files.
 */
export type { AuthenticationFile } from "./authentication-table.ts";
export { proxyFileSchema, settingTable } from "./describe-settings.ts";
export type { MethodConfigFile, MethodNameFile } from "./method-config-table.ts";
export type { ProxyConfiguration, RestFile, RestServiceFile } from "./proxy-file.ts";
export {
  type ConfigurationText,
  type FlagValues,
  readProxyFile,
  type ReadSettings,
  SettingsProblem,
} from "./read-proxy-file.ts";
export { type FlagOfSetting, flagsOfSettings } from "./setting-flags.ts";
export { type HeaderRulesFile, parseServiceFlag, type UpstreamFile, type UpstreamTlsFile } from "./upstream-table.ts";
