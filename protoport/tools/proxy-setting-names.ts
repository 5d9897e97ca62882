import { settingRows } from "../proxy/src/settings/setting-flags.ts";

/** Returns the paths of all proxy settings, such as `upstreams[].tls.ca`, without mappings, which only have members. */
export function proxySettingNames(): string[] {
  return settingRows().flatMap(({ path, type }) => (/^(?:list of )?mappings?$/.test(type) ? [] : [path]));
}
