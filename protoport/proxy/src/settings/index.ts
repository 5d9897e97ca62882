/**
 * How is the proxy configured? The reader, the JSON Schema, the reference page and the flags are derived from one table
 * (`setting-table.ts` and the tables that it includes).
 *
 * Flow: YAML → values with their lines (`Located`) → replaced by flag values → read by setting types. The module
 * opens no sockets, and reads only secret files.
 */
export type { AuthenticationSection } from "./authentication-table.ts";
export { type FlagOfSetting, flagsOfSettings, proxyConfigurationSchema, settingTable } from "./setting-flags.ts";
export type { MethodConfigSection, MethodNameSection } from "./method-config-table.ts";
export type { ProxyConfiguration, RestSection, RestServiceSection } from "./proxy-configuration.ts";
export {
  type ConfigurationText,
  readProxyConfiguration,
  type ReadSettings,
  SettingsProblem,
} from "./read-proxy-configuration.ts";
export {
  type HeaderRulesSection,
  parseServiceFlag,
  type UpstreamSection,
  type UpstreamTlsSection,
} from "./upstream-table.ts";
