/**
 * How is the proxy configured? The reader, the JSON Schema, the reference page and the flags are derived from one table
 * (`setting-table.ts` and the tables that it includes).
 *
 * Flow: YAML → values with their lines (`located.ts`) → flag values replace them → each is read by its type. The module
 * opens no sockets, and reads only secret files.
 */
export type { AuthenticationFile } from "./authentication-table.ts";
export { proxyFileSchema, settingTable } from "./describe-settings.ts";
export type { MethodConfigFile, MethodNameFile } from "./method-config-table.ts";
export type { ProxyConfiguration, RestFile, RestServiceFile } from "./proxy-file.ts";
export { type ConfigurationText, readProxyFile, type ReadSettings, SettingsProblem } from "./read-proxy-file.ts";
export { type FlagOfSetting, flagsOfSettings } from "./setting-flags.ts";
export { type HeaderRulesFile, parseServiceFlag, type UpstreamFile, type UpstreamTlsFile } from "./upstream-table.ts";
